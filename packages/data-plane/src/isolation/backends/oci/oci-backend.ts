import {
  AirlockError,
  effectiveIsolation,
  isAirlockError,
  type EffectiveIsolation,
  type Failpoint,
} from '@airlock/contract'
import { INSIDE, type GuestBoot } from '@airlock/contract/guest'
import { deadline, waitFor, type Log } from '@airlock/std'
import { accessSync, constants, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { chmod, chown, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Capabilities, IsolationBackend, RunningSandbox, SandboxSpec, SandboxStats } from '../../backend.ts'
import { makeBundle, USER } from './bundle.ts'
import { destroySandbox } from './destroy.ts'
import { Disks } from './disk.ts'
import { findGroups } from './groups/find-groups.ts'
import type { GroupEntry, Groups } from './groups/groups.ts'
import { makeHostImage, type Image } from './image.ts'
import { runLaunch, writeLaunch, type Launch } from './launch.ts'
import { isInit, measureIsolation } from './measure.ts'
import { isSandboxName, pathsOf, sandboxesDir, STAGE, type Places, type SandboxPaths } from './paths.ts'
import { maxOpenFiles, readPidFile, startTimeOf } from './processes.ts'
import { throwOnMissingCapabilities } from './rights.ts'
import { requireTool } from './run-tool.ts'
import { findRuntime, nameOf, type Runtime } from './runtime.ts'
import { compileSeccomp, readSeccompProfile, type OciSeccomp } from './seccomp.ts'
import { UidRanges, type UidRange } from './uid-ranges.ts'

export interface OciOptions extends Places {
  /** `auto`, a name, or a path. */
  readonly runtime: string
  /** The group of version 2 that was delegated to us, from the root of the tree. */
  readonly cgroup?: string
  /** Host path of the guest, one bundled file. */
  readonly guestBundle: string
  /** Host path of the Node that runs it. */
  readonly node: string
  readonly log: Log
  readonly failpoint: Failpoint
}

/** Looks at what this host has and fails closed: without any part of the wall there is no backend. */
export async function createOciBackend(options: OciOptions): Promise<OciBackend> {
  throwUnlessCapable()
  const runtime = await findRuntime(options.runtime)
  for (const [tool, debianPackage] of TOOLS) requireTool(tool, debianPackage)
  if (!existsSync(options.guestBundle))
    throw new AirlockError('isolation_unavailable', 'The guest is not built.', { hint: 'npm run build' })
  const program = { node: realpathSync(options.node), guest: realpathSync(options.guestBundle) }
  throwUnlessReadable(program.node, 0o005)
  throwUnlessReadable(program.guest, 0o004)
  mkdirSync(sandboxesDir(options), { recursive: true, mode: 0o700 })
  mkdirSync(STAGE, { recursive: true, mode: 0o711 })
  return new OciBackend(options, {
    runtime,
    program,
    groups: findGroups(options.stateDir, options.cgroup),
    uidRanges: new UidRanges(),
    image: makeHostImage(options.stateDir),
    disks: new Disks(requireTool('mkfs.ext4', 'e2fsprogs'), options.stateDir),
    seccomp: compileSeccomp(readSeccompProfile()),
    maxOpenFiles: Math.min(4096, maxOpenFiles()),
  })
}

/** Programs that the launcher and the guest call, and the Debian packages they are in. */
const TOOLS = [
  ['unshare', 'util-linux'],
  ['mount', 'mount'],
  ['setpriv', 'util-linux'],
  ['mkfs.ext4', 'e2fsprogs'],
] as const

const UNIFIED_BESIDE_V1 = '/sys/fs/cgroup/unified'
const START_LIMIT_MS = 30_000
const FREEZE_LIMIT_MS = 5_000

interface Parts {
  readonly runtime: Runtime
  readonly program: { readonly node: string; readonly guest: string }
  readonly groups: Groups
  readonly uidRanges: UidRanges
  readonly image: Image
  readonly disks: Disks
  readonly seccomp: OciSeccomp
  readonly maxOpenFiles: number
}

/** Sandboxes by an OCI runtime on this host, without a daemon. The port says what is promised. */
export class OciBackend implements IsolationBackend {
  readonly name = 'oci'
  readonly runtime: string
  readonly capabilities: Capabilities
  readonly #options: OciOptions
  readonly #parts: Parts
  /** What crun made of our profile for the first sandbox, in base64. */
  #compiledSeccomp: string | undefined
  readonly #starting = new Map<string, { readonly ended: Promise<unknown>; readonly abort: AbortController }>()

  constructor(options: OciOptions, parts: Parts) {
    this.#options = options
    this.#parts = parts
    this.runtime = nameOf(parts.runtime)
    this.capabilities = {
      tiers: ['standard'],
      network: 'none',
      pause: true,
      separateGuestUid: true,
      limits: [...parts.groups.limits, 'disk'],
      cgroup: parts.groups.kind,
    }
  }

  async start(spec: SandboxSpec, signal: AbortSignal): Promise<RunningSandbox> {
    throwOnUnsupported(spec)
    const paths = pathsOf(this.#options, spec.id)
    // Checked before anything is made, for a start that fails destroys whatever bears its id.
    if (this.#starting.has(spec.id) || existsSync(paths.disk) || this.#parts.groups.ids().includes(spec.id))
      throw new AirlockError('internal', `${spec.id} was started before.`)
    const abort = new AbortController()
    const started = this.#startOrDestroy(spec, paths, deadline(START_LIMIT_MS, AbortSignal.any([signal, abort.signal])))
    this.#starting.set(spec.id, { ended: started.catch(() => undefined), abort })
    return await started.finally(() => this.#starting.delete(spec.id))
  }

  async adopt(id: string): Promise<RunningSandbox | undefined> {
    const paths = pathsOf(this.#options, id)
    const pid = readPidFile(paths.pidFile)
    if (pid === undefined || !this.#parts.groups.holdsGuest(id, pid)) return undefined
    const startTime = startTimeOf(pid)
    if (startTime === undefined) return undefined
    const isolation = effectiveIsolation.parse(JSON.parse(await readFile(paths.isolation, 'utf8')))
    return { id, init: { pid, startTime }, isolation }
  }

  async freeze(id: string): Promise<void> {
    const { groups } = this.#parts
    groups.freeze(id)
    const frozen = () => groups.isFrozen(id) || groups.pids(id).length === 0 || undefined
    await waitFor(frozen, { signal: AbortSignal.timeout(FREEZE_LIMIT_MS), everyMs: 1 }).catch((cause: unknown) => {
      throw new AirlockError('timeout', `${id} could not be frozen.`, { cause })
    })
  }

  async thaw(id: string): Promise<void> {
    this.#parts.groups.thaw(id)
  }

  async stats(id: string): Promise<SandboxStats | undefined> {
    return this.#parts.groups.stats(id)
  }

  async stop(id: string): Promise<void> {
    const starting = this.#starting.get(id)
    starting?.abort.abort(new AirlockError('sandbox_ended', 'The sandbox was ended while it started.'))
    await starting?.ended
    await this.#destroy(id)
  }

  async reap(keep: ReadonlySet<string>): Promise<readonly string[]> {
    const directories = await readdir(sandboxesDir(this.#options))
    const found = new Set([...directories, ...this.#parts.groups.ids()])
    const orphans = [...found].filter((id) => isSandboxName(id) && !keep.has(id) && !this.#starting.has(id))
    // One that will not die must not protect the others.
    const ends = await Promise.allSettled(orphans.map(async (id) => await this.stop(id)))
    return orphans.filter((sandbox, at) => {
      const end = ends[at]
      if (end?.status === 'rejected') this.#options.log.error('could not reap', { sandbox, cause: end.reason })
      return end?.status === 'fulfilled'
    })
  }

  async #startOrDestroy(spec: SandboxSpec, paths: SandboxPaths, signal: AbortSignal): Promise<RunningSandbox> {
    try {
      return await this.#start(spec, paths, signal)
    } catch (error) {
      await this.#destroy(spec.id).catch((cause: unknown) =>
        this.#options.log.error('a failed start left something behind', { sandbox: spec.id, cause }),
      )
      throw isAirlockError(error) ? error : new AirlockError('start_failed', undefined, { cause: error })
    }
  }

  async #start(spec: SandboxSpec, paths: SandboxPaths, signal: AbortSignal): Promise<RunningSandbox> {
    const { uidRanges, disks } = this.#parts
    const { failpoint } = this.#options
    await mkdir(paths.dir, { recursive: true, mode: 0o700 })
    const uidRange = uidRanges.claim(paths.dir)
    const entry = this.#makeGroups(spec, uidRange)
    await failpoint('create.groups-made')
    await disks.make(paths.disk, spec.limits.diskBytes)
    await failpoint('create.disk-made')
    signal.throwIfAborted()
    // Whoever can reach the socket is the guest: nobody but the sandbox's root may pass.
    await Promise.all([chown(spec.controlDir, uidRange.first, uidRange.first), chmod(spec.controlDir, 0o700)])
    const launch = this.#launch(spec, paths, { uidRange, groups: entry })
    await writeLaunch(launch)
    await runLaunch(launch, signal)
    await failpoint('create.launched')
    await writeFile(paths.isolation, JSON.stringify(await this.#measure(paths, signal)))
    if (launch.runtime.kind === 'crun') this.#compiledSeccomp ??= await readCompiledSeccomp(paths, spec.id)
    const running = await this.adopt(spec.id)
    if (!running) throw new AirlockError('start_failed', 'The sandbox ended as soon as it started.')
    return running
  }

  /** Fails closed: a limit that the kernel does not take is not one. */
  #makeGroups(spec: SandboxSpec, uidRange: UidRange): GroupEntry {
    try {
      return this.#parts.groups.make(spec.id, { limits: spec.limits, owner: uidRange.first })
    } catch (cause) {
      throw new AirlockError('isolation_unavailable', 'The limits of the sandbox cannot be enforced.', { cause })
    }
  }

  #launch(
    spec: SandboxSpec,
    paths: SandboxPaths,
    made: { readonly uidRange: UidRange; readonly groups: GroupEntry },
  ): Launch {
    const { groups, image, program, runtime, seccomp } = this.#parts
    const inside = groups.inside(spec.id)
    const hides = runtime.kind === 'crun' && groups.kind === 'hybrid' && existsSync(UNIFIED_BESIDE_V1)
    return {
      id: spec.id,
      paths,
      runtime,
      groups: made.groups,
      user: made.uidRange.first + USER.uid,
      bundle: makeBundle({
        boot: makeBoot(inside.guest),
        limits: spec.limits,
        uidRange: made.uidRange,
        seccomp,
        compiledSeccomp: this.#compiledSeccomp,
        imageBinds: image.binds,
        groupBinds: inside.binds,
        cgroupsPath: runtime.kind === 'runc' ? groups.runtimePath(spec.id) : undefined,
        maxOpenFiles: this.#parts.maxOpenFiles,
      }),
      sources: {
        ...program,
        rootfs: image.rootfs,
        program: image.program,
        controlDir: spec.controlDir,
        hidden: hides ? UNIFIED_BESIDE_V1 : undefined,
      },
    }
  }

  /** A runtime answers before its child has become ours, and the filter comes last: only then is there a wall to measure. */
  async #measure(paths: SandboxPaths, signal: AbortSignal): Promise<EffectiveIsolation> {
    const pid = readPidFile(paths.pidFile)
    if (pid === undefined) throw new AirlockError('start_failed', 'The runtime did not say which process it started.')
    await waitFor(() => (isInit(pid) ? true : undefined), { signal, everyMs: 1 })
    return {
      backend: this.name,
      runtime: this.runtime,
      tier: 'standard',
      ...measureIsolation(pid),
      cgroup: this.#parts.groups.kind,
      limits: [...this.capabilities.limits],
    }
  }

  async #destroy(id: string): Promise<void> {
    const { groups, uidRanges } = this.#parts
    const { failpoint } = this.#options
    await destroySandbox({ id, paths: pathsOf(this.#options, id), groups, uidRanges, failpoint })
  }
}

/** Where crun keeps the filter of a sandbox, for commands of its own. Undefined when it does not. */
async function readCompiledSeccomp(paths: SandboxPaths, id: string): Promise<string | undefined> {
  return await readFile(join(paths.runtimeState, id, 'seccomp.bpf'), 'base64').catch(() => undefined)
}

/** Nothing of the caller's is in it: arguments of a process can be read by everybody on the host. */
function makeBoot(groups: GuestBoot['groups']): GuestBoot {
  const env = {
    PATH: `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${INSIDE.program}/bin`,
    HOME: INSIDE.home,
    USER: 'user',
    LOGNAME: 'user',
    SHELL: existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh',
    LANG: 'C.UTF-8',
    TMPDIR: '/tmp',
  }
  return { socket: INSIDE.controlSocket, user: USER, env, groups }
}

/** Fails closed: what this backend does not do is refused, never done differently. */
function throwOnUnsupported(spec: SandboxSpec): void {
  if (spec.tier !== 'standard')
    throw new AirlockError('isolation_unavailable', `The tier "${spec.tier}" is not available on this host.`)
  if (spec.template !== 'base') throw new AirlockError('template_not_found', `There is no template "${spec.template}".`)
}

function throwUnlessCapable(): void {
  if (process.platform !== 'linux') throw new AirlockError('isolation_unavailable', 'Sandboxes need Linux.')
  if (process.getuid?.() !== 0) throw new AirlockError('isolation_unavailable', 'Sandboxes need root on this host.')
  throwOnMissingCapabilities()
  if (!existsSync('/proc/sys/kernel/seccomp/actions_avail'))
    throw new AirlockError('isolation_unavailable', 'The kernel has no system call filter (seccomp).')
}

/** Inside, our files belong to nobody: only what everybody may read can be used. */
function throwUnlessReadable(path: string, bits: number): void {
  accessSync(path, constants.R_OK)
  if ((statSync(path).mode & bits) === bits) return
  throw new AirlockError('isolation_unavailable', `Not everybody may read ${path}.`, { hint: `chmod o+rx ${path}` })
}
