import { isAirlockError } from '@airlock/contract'
import { existsSync } from 'node:fs'
import { release } from 'node:os'
import { readSeccompProfile, compileSeccomp } from './backends/oci/seccomp.ts'
import {
  tryCapabilities,
  tryGroups,
  tryIdMappedMount,
  tryLoopImage,
  tryNamespaces,
  tryOverlay,
  tryRuntime,
  tryUidRange,
  tryVersion,
  type Tried,
} from './backends/oci/tries.ts'
import { trySandbox, type SandboxTrial, type TriedSandbox } from './doctor-sandbox.ts'

export interface Check {
  readonly name: string
  /** `limited`: sandboxes work without it, something that builds on it does not. */
  readonly status: 'found' | 'missing' | 'limited'
  readonly detail: string
  /** What to do about it. */
  readonly todo?: string
}

/** The name of the check that decides: whether a sandbox with all its walls works here. */
export const SANDBOX_CHECK = 'sandbox'

/** Tries each thing that a sandbox is made of, then a whole one. Leaves nothing behind. */
export async function runChecks(trial: SandboxTrial): Promise<readonly Check[]> {
  if (process.platform !== 'linux')
    return [{ name: 'kernel', status: 'missing', detail: process.platform, todo: 'Run Airlock on Linux.' }]
  // One after another: a check that fails must not be another check's fault.
  const checks: Check[] = [{ name: 'kernel', status: 'found', detail: `Linux ${release()} ${process.arch}` }]
  for (const { name, attempt, otherwise, todo } of PARTS)
    checks.push(toCheck(name, await attempt(trial), { otherwise, todo }))
  // The one that decides is the last.
  checks.push(await checkStrictSandbox(trial), await checkSandbox(trial))
  return checks
}

interface Part {
  readonly name: string
  readonly attempt: (trial: SandboxTrial) => Promise<Tried>
  readonly otherwise: 'missing' | 'limited'
  readonly todo: string
}

const PARTS: readonly Part[] = [
  {
    name: 'capabilities',
    attempt: tryCapabilities,
    otherwise: 'missing',
    todo: 'Run as root; a container is given them by name: see docs/deploy.md.',
  },
  {
    name: 'namespaces',
    attempt: tryNamespaces,
    otherwise: 'missing',
    todo: 'Run as root; in a container see docs/deploy.md; on Ubuntu see kernel.apparmor_restrict_unprivileged_userns.',
  },
  { name: 'uid ranges', attempt: tryUidRange, otherwise: 'missing', todo: 'Run as root.' },
  {
    name: 'cgroups',
    attempt: tryGroups,
    otherwise: 'missing',
    todo: 'Mount the memory, pids and cpu controllers where root may make groups; in a container see docs/deploy.md.',
  },
  { name: 'seccomp', attempt: trySeccomp, otherwise: 'missing', todo: 'Use a kernel with CONFIG_SECCOMP_FILTER.' },
  {
    name: 'id-mapped mounts',
    attempt: tryIdMappedMount,
    otherwise: 'limited',
    todo: 'Use Linux 5.12 or later and a file system that supports them; without them host directories cannot be granted.',
  },
  {
    name: 'overlay',
    attempt: tryOverlay,
    otherwise: 'limited',
    todo: 'modprobe overlay; templates with packages need it.',
  },
  {
    name: 'loop images',
    attempt: tryLoopImage,
    otherwise: 'missing',
    todo: 'modprobe loop ext4; apt-get install e2fsprogs mount; in a container see docs/deploy.md.',
  },
  { name: 'crun', attempt: async () => await tryRuntime('crun'), otherwise: 'limited', todo: 'apt-get install crun' },
  { name: 'runc', attempt: async () => await tryRuntime('runc'), otherwise: 'limited', todo: 'apt-get install runc' },
  {
    name: 'runsc',
    attempt: async () => await tryRuntime('runsc'),
    otherwise: 'limited',
    todo: 'Only for the strict tier: apt-get install runsc, or take one from gvisor.dev.',
  },
  {
    name: 'python',
    attempt: async () => await tryVersion('/usr/bin/python3'),
    otherwise: 'limited',
    todo: 'apt-get install python3',
  },
  { name: 'node', attempt: async ({ node }) => await tryVersion(node), otherwise: 'missing', todo: 'Run npm ci.' },
]

function toCheck(name: string, tried: Tried, failure: Pick<Part, 'otherwise' | 'todo'>): Check {
  if (tried.works) return { name, status: 'found', detail: tried.detail }
  return { name, status: failure.otherwise, detail: tried.why, todo: failure.todo }
}

/** That the kernel really applies the filter is seen in the sandbox; here, that there is one for this machine. */
async function trySeccomp(): Promise<Tried> {
  if (!existsSync('/proc/sys/kernel/seccomp/actions_avail')) return { works: false, why: 'the kernel has no filters' }
  try {
    const { syscalls } = compileSeccomp(readSeccompProfile())
    const allowed = new Set(syscalls.filter(({ action }) => action === 'SCMP_ACT_ALLOW').flatMap(({ names }) => names))
    return { works: true, detail: `allowlist of ${allowed.size} system calls` }
  } catch (error) {
    return { works: false, why: error instanceof Error ? error.message : String(error) }
  }
}

async function checkSandbox(trial: SandboxTrial): Promise<Check> {
  if (!existsSync(trial.guestBundle))
    return { name: SANDBOX_CHECK, status: 'missing', detail: 'the guest is not built', todo: 'npm run build' }
  try {
    return checkProbe(SANDBOX_CHECK, await trySandbox(trial))
  } catch (error) {
    return { name: SANDBOX_CHECK, status: 'missing', detail: describe(error), todo: todoOf(error) }
  }
}

/** Sandboxes work without it: only the strict tier is refused then. */
async function checkStrictSandbox(trial: SandboxTrial): Promise<Check> {
  const name = 'strict sandbox'
  try {
    const tried = await trySandbox(trial, 'strict')
    const check = checkProbe(name, tried)
    if (check.status !== 'found' || tried.statFault === null) return check
    return {
      name,
      status: 'limited',
      detail: `${check.detail}; stat fails in it, and so does ls: ${tried.statFault}`,
      todo: 'Take a newer runsc from gvisor.dev and name it in AIRLOCK_RUNSC.',
    }
  } catch (error) {
    return { name, status: 'limited', detail: describe(error), todo: 'Only for the strict tier: see docs/tiers.md.' }
  }
}

function checkProbe(name: string, { runtime, startMs, probe }: TriedSandbox): Check {
  const started = `started with ${runtime} in ${startMs} ms`
  if (probe.passed.length === 0)
    return { name, status: 'found', detail: `${started}, ${probe.tried} forbidden system calls fail, ended` }
  const todo = 'Use another OCI runtime: this one does not install the filter that it is given.'
  return {
    name,
    status: 'missing',
    detail: `${started}; forbidden system calls work: ${probe.passed.join(', ')}`,
    todo,
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return typeof error.cause === 'string' ? `${error.message} ${error.cause}` : error.message
}

function todoOf(error: unknown): string {
  if (isAirlockError(error) && error.code !== 'start_failed') return error.hint
  return 'Mend what is marked above first; in a container see docs/deploy.md.'
}
