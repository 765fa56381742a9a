import { AirlockError } from '@airlock/contract'
import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { findTool, runTool } from './run-tool.ts'

/** How a runtime treats control groups: crun and runsc leave them to us, runc joins the one it is told. */
export type RuntimeKind = 'crun' | 'runc' | 'runsc'

export interface Runtime {
  readonly kind: RuntimeKind
  readonly path: string
  readonly version: string
  /** What this version must be told beyond the others of its kind. */
  readonly args: readonly string[]
}

const KINDS: readonly RuntimeKind[] = ['crun', 'runc', 'runsc']
const STANDARD: readonly RuntimeKind[] = ['crun', 'runc']

/** `auto` takes the first of crun and runc; else a name or a path of one of them. Fails closed. */
export async function findRuntime(wanted: string): Promise<Runtime> {
  const candidates = wanted === 'auto' ? STANDARD : [wanted]
  for (const name of candidates) {
    const path = findTool(name)
    const runtime = path === undefined ? undefined : await describeRuntime(path)
    if (runtime && STANDARD.includes(runtime.kind)) return runtime
  }
  throw new AirlockError(
    'isolation_unavailable',
    wanted === 'auto' ? 'No OCI runtime was found.' : `The OCI runtime "${wanted}" was not found or is not supported.`,
    { hint: 'apt-get install crun' },
  )
}

/** gVisor: `auto` takes runsc where it is installed, `none` has none; else a name or a path, which must be one. */
export async function findStrictRuntime(wanted: string): Promise<Runtime | undefined> {
  if (wanted === 'none') return undefined
  const path = findTool(wanted === 'auto' ? 'runsc' : wanted)
  const runtime = path === undefined ? undefined : await describeRuntime(path)
  if (runtime?.kind === 'runsc') return { ...runtime, args: await stricterArgs(runtime.path) }
  if (wanted === 'auto') return undefined
  throw new AirlockError('isolation_unavailable', `The gVisor runtime "${wanted}" was not found or is none.`, {
    hint: 'Name a runsc in AIRLOCK_RUNSC, or unset it.',
  })
}

/** Undefined when it does not answer as one of the runtimes we know. */
export async function describeRuntime(path: string): Promise<Runtime | undefined> {
  const { exitCode, stdout } = await runTool(path, ['--version'])
  const match = /^(\w+) version (\S+)/mu.exec(stdout)
  const kind = KINDS.find((name) => name === match?.[1])
  return exitCode === 0 && kind && match?.[2] ? { kind, path, version: match[2], args: [] } : undefined
}

/** Since 2023 the kernel of gVisor opens files itself unless it is told to leave that to a process beside it, and to need no rights. */
async function stricterArgs(path: string): Promise<readonly string[]> {
  const { stdout, stderr } = await runTool(path, ['flags'])
  return /^\s*-directfs\b/mu.test(stdout + stderr) ? ['--directfs=false'] : []
}

/** The runtime as it is shown: `crun 1.8.1`. */
export function nameOf(runtime: Runtime): string {
  return `${basename(runtime.path)} ${runtime.version}`
}

/** Changes with every other program at its path, also while we run. */
export function identityOf({ path }: Runtime): string {
  const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [path, dev, ino, size, mtimeNs, ctimeNs].join(' ')
}
