import {
  AirlockError,
  DEFAULTS,
  DOOR_SOCKETS,
  type EffectiveIsolation,
  type Failpoint,
  type Limits,
  type NodeSample,
} from '@airlock/contract'
import { EGRESS_PORT, INSIDE, LLM_PORT, type GuestBoot, type GuestBridge } from '@airlock/contract/guest'
import { waitFor, type Log } from '@airlock/std'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { chmod, chown, mkdir, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  STRICT_DIFFERENCES,
  type Capabilities,
  type GroupUsage,
  type LimitChange,
  type RunningSandbox,
  type LostFor,
  type SandboxSpec,
  type SandboxStats,
  type StartedSandbox,
  type Strain,
} from '../../backend.ts'
import type { BareBackend } from '../../guarded-backend.ts'
import { HostDisk } from '../../host-disk.ts'
import { Allocation, takenBy } from './allocate.ts'
import { makeBoot, THREADS } from './boot.ts'
import { initArgs, makeBundle, USER, type Bundle } from './bundle.ts'
import { CompiledFilter } from './compiled-filter.ts'
import { destroySandbox } from './destroy.ts'
import { Disks, wholeBlocks } from './disk.ts'
import { canGrowDisks } from './grow-disk.ts'
import { findGroups } from './groups/find-groups.ts'
import { grantBinds, OciHostPaths } from './grants/grants.ts'
import type { GroupEntry, Groups } from './groups/groups.ts'
import type { Image } from './images/image.ts'
import { ImageStore } from './images/image-store.ts'
import { makeProgram, removeOldPrograms, type Program } from './images/program.ts'
import { runLaunch, writeLaunch, type Launch } from './launch.ts'
import { assertOpenFiles, changeLimits, groupLimits, settleLimits } from './limits.ts'
import { isInit, isSentry, measureIsolation } from './measure.ts'
import { Meters } from './meters.ts'
import { exposedBelow, mountsOf } from './mounts.ts'
import { ProcFiles } from './proc-files.ts'
import { isSandboxName, pathsOf, sandboxesDir, STAGE, type Places, type SandboxPaths } from './paths.ts'
import { throwUnlessCapable } from './preconditions.ts'
import { maxOpenFiles, readPidFile, startTimeOf } from './processes.ts'
import { requireTool } from './run-tool.ts'
import { findRuntime, findStrictRuntime, identityOf, nameOf, type Runtime } from './runtime.ts'
import { compileSeccomp, readSeccompProfile, forGvisor, type OciSeccomp } from './seccomp.ts'
import { tryIdMappedMount } from './tries.ts'
import { UidRanges, type UidRange } from './uid-ranges.ts'
import { OciWorktrees } from './worktrees/oci-worktrees.ts'

export interface OciOptions extends Places {
  /** `auto`, a name, or a path. */
  readonly runtime: string
  /** gVisor, for the strict tier: `auto`, `none`, or a path. */
  readonly runsc?: string
  /** The group of version 2 that was delegated to us, from the root of the tree. */
  readonly cgroup?: string
  /** Host path of the guest, one bundled file. */
  readonly guestBundle: string
  /** Host path of the Node that runs it. */
  readonly node: string
  /** What stays free on the disk of the host; null is a share of it. */
  readonly diskReserveBytes?: number | null
  /** Whether the blocks of disks are set aside when they are made. */
  readonly disks?: 'whole' | 'sparse'
  readonly log: Log
  readonly failpoint: Failpoint
}

/** Looks at what this host has and fails closed: without any part of the wall there is no backend. */
export async function createOciBackend(options: OciOptions): Promise<OciBackend> {
  throwUnlessCapable()
  const runtime = await findRuntime(options.runtime)
  const gvisor = await findStrictRuntime(options.runsc ?? 'auto')
  for (const [tool, debianPackage] of TOOLS) requireTool(tool, debianPackage)
  if (!existsSync(options.guestBundle))
    throw new AirlockError('isolation_unavailable', 'The guest is not built.', { hint: 'npm run build' })
  const guest = realpathSync(options.guestBundle)
  const sources = { node: realpathSync(options.node), guest, kernels: join(dirname(guest), 'kernels') }
  const ours = await makeProgram(options.stateDir, sources, options.log)
  mkdirSync(sandboxesDir(options), { recursive: true, mode: 0o700 })
  mkdirSync(STAGE, { recursive: true, mode: 0o711 })
  const profile = readSeccompProfile()
  const hostDisk = new HostDisk({ dir: options.stateDir, reserveBytes: options.diskReserveBytes ?? null })
  return new OciBackend(options, {
    tiers: {
      standard: { runtime, seccomp: compileSeccomp(profile) },
      ...(gvisor ? { strict: { runtime: gvisor, seccomp: compileSeccomp(forGvisor(profile)) } } : {}),
    },
    groups: findGroups(options.stateDir, options.cgroup),
    uidRanges: new UidRanges(),
    images: new ImageStore({ ...options, hostDisk, tools: ours.tools }),
    ours,
    disks: new Disks({ mkfs: requireTool('mkfs.ext4', 'e2fsprogs'), extents: ours.tools.extents }, options.stateDir),
    hostDisk,
    allocation: new Allocation({ hostDisk, log: options.log, mode: options.disks ?? 'whole' }),
    maxOpenFiles: Math.min(DEFAULTS.openFiles.max, maxOpenFiles()),
    mapsOwners: (await tryIdMappedMount()).works,
    procFiles: new ProcFiles(),
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
const FREEZE_LIMIT_MS = 5_000
/** How long sampling may keep everything else waiting. */
const TURN_MS = 1

interface Parts {
  readonly tiers: { readonly standard: Tier; readonly strict?: Tier }
  readonly groups: Groups
  readonly uidRanges: UidRanges
  readonly images: ImageStore
  readonly ours: Program
  readonly disks: Disks
  readonly hostDisk: HostDisk
  readonly allocation: Allocation
  readonly maxOpenFiles: number
  readonly mapsOwners: boolean
  readonly procFiles: ProcFiles
}

/** What a sandbox of a tier runs on. */
interface Tier {
  readonly runtime: Runtime
  readonly seccomp: OciSeccomp
}

/** One start under way. */
interface Start {
  readonly spec: SandboxSpec
  readonly tier: Tier
  readonly paths: SandboxPaths
  readonly image: Image
}

/** Sandboxes by an OCI runtime on this host, without a daemon. Port and guard say what is promised. */
export class OciBackend implements BareBackend {
  readonly name = 'oci'
  readonly runtime: string
  readonly capabilities: Capabilities
  readonly images: ImageStore
  readonly hostPaths: OciHostPaths
  readonly worktrees: OciWorktrees
  readonly hostDisk: HostDisk
  readonly #options: OciOptions
  readonly #parts: Parts
  readonly #compiledFilter = new CompiledFilter()
  readonly #meters: Meters
  /** Being destroyed: nobody opens anything of them. */
  readonly #ending = new Set<string>()
  /** Failpoints pass them by. */
  readonly #throwAways = new Set<string>()

  constructor(options: OciOptions, parts: Parts) {
    this.#options = options
    this.#parts = parts
    this.runtime = nameOf(parts.tiers.standard.runtime)
    this.images = parts.images
    this.hostDisk = parts.hostDisk
    this.#meters = new Meters({ groups: parts.groups, pathsOf: (id) => pathsOf(options, id) })
    this.hostPaths = new OciHostPaths(options, parts.ours.tools.grants)
    this.worktrees = new OciWorktrees({ places: options, tools: parts.ours.tools, hostDisk: parts.hostDisk })
    this.capabilities = {
      tiers: parts.tiers.strict ? ['standard', 'strict'] : ['standard'],
      network: 'none',
      pause: true,
      separateGuestUid: true,
      limits: [...parts.groups.limits, 'disk', 'inodes', 'open-files'],
      growsDisks: canGrowDisks(),
      cgroup: parts.groups.kind,
      mounts: parts.mapsOwners ? ['idmap'] : [],
      strictDiffers: parts.tiers.strict ? STRICT_DIFFERENCES : [],
    }
  }

  wallOf(name: SandboxSpec['tier'], image: string): string {
    const { runtime, seccomp } = this.#tierOf({ tier: name, mounts: [] })
    const { name: ours } = this.#parts.ours
    const parts = [identityOf(runtime), runtime.args, seccomp, this.images.find(image).name, ours]
    return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  }

  async start(spec: SandboxSpec, signal: AbortSignal): Promise<StartedSandbox> {
    const tier = this.#tierOf(spec)
    assertOpenFiles(spec.limits, this.#parts.maxOpenFiles)
    const image = this.images.find(spec.image)
    const paths = pathsOf(this.#options, spec.id)
    if (spec.isThrowAway) this.#throwAways.add(spec.id)
    const running = await this.#start({ spec, tier, image, paths }, signal)
    return { ...running, image: image.name }
  }

  async holds(id: string): Promise<boolean> {
    return existsSync(pathsOf(this.#options, id).disk) || this.#parts.groups.ids().includes(id)
  }

  async adopt(id: string): Promise<RunningSandbox | undefined> {
    const paths = pathsOf(this.#options, id)
    const pid = readPidFile(paths.pidFile)
    if (pid === undefined || !this.#parts.groups.holdsGuest(id, pid)) return undefined
    const startTime = startTimeOf(pid)
    if (startTime === undefined) return undefined
    return { id, init: { pid, startTime } }
  }

  async changeLimits(id: string, change: LimitChange): Promise<Limits> {
    const isWhole = this.#parts.tiers[change.tier]?.runtime.kind === 'runsc'
    const { disk, proc } = pathsOf(this.#options, id)
    const held = await changeLimits({ ...this.#parts, id, disk, isWhole, hold: async () => this.#hold(id) }, change)
    this.#parts.procFiles.change(proc, held)
    return held
  }

  async settleLimits(id: string, limits: Limits): Promise<Limits> {
    const { disk, proc } = pathsOf(this.#options, id)
    this.#parts.procFiles.change(proc, limits)
    return await settleLimits({ ...this.#parts, ...this.#options, id, disk }, limits)
  }

  async takenBytes(): Promise<number> {
    return await takenBy(this.#options)
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

  async isFrozen(id: string): Promise<boolean> {
    return this.#parts.groups.isFrozen(id)
  }

  async stats(id: string): Promise<SandboxStats | undefined> {
    return this.#parts.groups.stats(id)
  }

  async sample(ids: readonly string[]): Promise<readonly NodeSample[]> {
    const samples: NodeSample[] = []
    let since = performance.now()
    for (const id of ids) {
      const sample = this.#sampleOne(id)
      if (sample) samples.push(sample)
      if (performance.now() - since < TURN_MS) continue
      await nextTurn()
      since = performance.now()
    }
    return samples
  }

  async strain(id: string, child: string | undefined): Promise<Strain | undefined> {
    return this.#ending.has(id) ? undefined : this.#meters.strain(id, child)
  }

  async isDiskFull(id: string): Promise<boolean> {
    return !this.#ending.has(id) && this.#meters.isDiskFull(id)
  }

  async lostFor(id: string, tier: SandboxSpec['tier']): Promise<LostFor | undefined> {
    // In the strict tier guest and user code are one process, in the group with the limits.
    const { oomKills, pidsRefused } = this.#parts.groups.denied(id, tier === 'strict' ? 'user' : 'guest')
    if ((oomKills ?? 0) > 0) return 'out_of_memory'
    return (pidsRefused ?? 0) > 0 ? 'pids_exhausted' : undefined
  }

  async groupUsage(id: string, child: string): Promise<GroupUsage | undefined> {
    return this.#ending.has(id) ? undefined : this.#meters.usage(id, child)
  }

  async stop(id: string): Promise<void> {
    await this.#destroy(id)
  }

  async reap(keep: ReadonlySet<string>): Promise<readonly string[]> {
    const directories = await readdir(sandboxesDir(this.#options))
    const found = new Set([...directories, ...this.#parts.groups.ids()])
    const orphans = [...found].filter((id) => isSandboxName(id) && !keep.has(id))
    // Sandboxes of an earlier life stand on what that was started from.
    removeOldPrograms(this.#options.stateDir, this.#parts.ours, sandboxesDir(this.#options))
    // One that will not die must not protect the others.
    const ends = await Promise.allSettled(orphans.map(async (id) => await this.stop(id)))
    return orphans.filter((sandbox, at) => {
      const end = ends[at]
      if (end?.status === 'rejected') this.#options.log.error('could not reap', { sandbox, cause: end.reason })
      return end?.status === 'fulfilled'
    })
  }

  async #hold(id: string): Promise<() => void> {
    const { groups } = this.#parts
    if (groups.isFrozen(id)) return () => undefined
    await this.freeze(id)
    return () => groups.thaw(id)
  }

  /** One that cannot be read must not hide the others. */
  #sampleOne(id: string): NodeSample | undefined {
    try {
      return this.#ending.has(id) ? undefined : this.#meters.read(id)
    } catch (error) {
      this.#options.log.warn('a sandbox could not be sampled', { sandbox: id, error })
      return undefined
    }
  }

  async #start(start: Start, signal: AbortSignal): Promise<Omit<StartedSandbox, 'image'>> {
    const { spec, paths } = start
    const { uidRanges, disks, allocation } = this.#parts
    const failpoint = this.#failpointOf(spec.id)
    await mkdir(paths.dir, { recursive: true, mode: 0o700 })
    const uidRange = uidRanges.claim(paths.dir)
    const entry = this.#makeGroups(start, uidRange)
    await failpoint('create.groups-made')
    await disks.make(paths.disk, spec.limits)
    await failpoint('create.disk-made')
    signal.throwIfAborted()
    // Whoever can reach the socket is the guest: nobody but the sandbox's root may pass.
    await Promise.all([chown(spec.controlDir, uidRange.first, uidRange.first), chmod(spec.controlDir, 0o700)])
    const boot = this.#boot(start)
    const launch = this.#launch(start, { uidRange, boot, groups: entry })
    this.#parts.procFiles.make(paths.proc, spec.limits)
    await Promise.all([writeLaunch(launch), allocation.allocate(paths.disk, wholeBlocks(spec.limits.diskBytes))])
    await runLaunch(launch, signal)
    await failpoint('create.launched')
    const isolation = await this.#measure(start, { init: initArgs(boot), bundle: launch.bundle }, signal)
    await this.#compiledFilter.keep(launch.runtime, paths, spec.id)
    const running = await this.adopt(spec.id)
    if (!running) throw new AirlockError('start_failed', 'The sandbox ended as soon as it started.')
    return { ...running, isolation }
  }

  #failpointOf(id: string): Failpoint {
    return this.#throwAways.has(id) ? async () => {} : this.#options.failpoint
  }

  /** Fails closed: a limit that the kernel does not take is not one. */
  #makeGroups({ spec, tier }: Start, uidRange: UidRange): GroupEntry {
    const isWhole = tier.runtime.kind === 'runsc'
    const limits = groupLimits(spec.limits, isWhole)
    try {
      return this.#parts.groups.make(spec.id, { limits, owner: uidRange.first, isWhole })
    } catch (cause) {
      throw new AirlockError('isolation_unavailable', 'The limits of the sandbox cannot be enforced.', { cause })
    }
  }

  #boot({ spec, tier, image }: Start): GuestBoot {
    const { groups, ours } = this.#parts
    // The kernel of gVisor has no group that a process inside could enter.
    const isWhole = tier.runtime.kind === 'runsc'
    const inside = isWhole ? undefined : groups.inside(spec.id).guest
    const made = makeBoot(inside, image.hasHostPrograms ? undefined : ours.programs, spec.limits)
    const boot = isWhole ? made : { ...made, threads: THREADS }
    return spec.doors.length === 0 ? boot : { ...boot, doors: INSIDE.doors, bridges: bridgesOf(spec.doors) }
  }

  #launch(
    { spec, paths, image, tier }: Start,
    made: { readonly uidRange: UidRange; readonly boot: GuestBoot; readonly groups: GroupEntry },
  ): Launch {
    const { groups, ours } = this.#parts
    const { runtime, seccomp } = tier
    const isWhole = runtime.kind === 'runsc'
    const inside = groups.inside(spec.id)
    const user = made.uidRange.first + USER.uid
    const hides = runtime.kind === 'crun' && groups.kind === 'hybrid' && existsSync(UNIFIED_BESIDE_V1)
    return {
      id: spec.id,
      paths,
      runtime,
      script: ours.tools.launch,
      groups: made.groups,
      user,
      // gVisor mounts on the root itself what is bound, and knows of the memory file systems between only later.
      points: isWhole ? [INSIDE.controlDir, ...spec.doors.map(({ name }) => `${INSIDE.doors}/${name}`)] : [],
      closed: exposedBelow(
        mountsOf('self'),
        image.binds.map(({ source }) => source),
      ),
      grants: spec.mounts.length === 0 ? undefined : this.hostPaths.request(spec.mounts, user),
      bundle: makeBundle({
        boot: made.boot,
        limits: spec.limits,
        uidRange: made.uidRange,
        seccomp,
        compiledSeccomp: this.#compiledFilter.of(runtime),
        imageBinds: image.binds,
        groupBinds: isWhole ? [] : inside.binds,
        grants: grantBinds(spec.mounts),
        doors: spec.doors.map(({ name }) => name),
        hasProcFiles: !isWhole,
        cgroupsPath: runtime.kind === 'runc' ? groups.runtimePath(spec.id) : undefined,
        maxOpenFiles: this.#parts.maxOpenFiles,
      }),
      sources: {
        root: image.root,
        overlays: image.overlays,
        program: ours.dir,
        controlDir: spec.controlDir,
        proc: isWhole ? undefined : paths.proc,
        doors: spec.doors,
        hidden: hides ? UNIFIED_BESIDE_V1 : undefined,
      },
    }
  }

  /** Fails closed: what this backend does not do is refused, never done differently. */
  #tierOf(spec: Pick<SandboxSpec, 'tier' | 'mounts'>): Tier {
    const tier = this.#parts.tiers[spec.tier]
    if (tier?.runtime.kind === 'runsc' && spec.mounts.some(({ mode }) => mode === 'rw'))
      throw new AirlockError(
        'isolation_unavailable',
        'In the strict tier nothing of the host is mounted for writing.',
        {
          hint: 'Grant it read-only, or use the standard tier.',
        },
      )
    if (tier) return tier
    throw new AirlockError('isolation_unavailable', `The tier "${spec.tier}" is not available on this host.`, {
      hint: 'Install gVisor (runsc), or name one in AIRLOCK_RUNSC.',
    })
  }

  /** A runtime answers before its child has become ours, and the filter comes last: only then is there a wall to measure. */
  async #measure(
    { spec, tier, paths }: Start,
    { init, bundle }: { readonly init: readonly string[]; readonly bundle: Bundle },
    signal: AbortSignal,
  ): Promise<EffectiveIsolation> {
    const pid = readPidFile(paths.pidFile)
    if (pid === undefined) throw new AirlockError('start_failed', 'The runtime did not say which process it started.')
    const isUp = () => (tier.runtime.kind === 'runsc' ? isSentry(pid) : isInit(pid, init))
    await waitFor(() => (isUp() ? true : undefined), { signal, everyMs: 1 })
    const writableGrants = spec.mounts.filter(({ mode }) => mode === 'rw').map(({ target }) => target)
    return {
      backend: this.name,
      runtime: nameOf(tier.runtime),
      tier: spec.tier,
      ...measureIsolation(pid, tier.runtime.kind, { bundle, writableGrants }),
      cgroup: this.#parts.groups.kind,
      limits: [...this.capabilities.limits],
      probe: null,
    }
  }

  async #destroy(id: string): Promise<void> {
    const { groups, uidRanges } = this.#parts
    const failpoint = this.#failpointOf(id)
    this.#ending.add(id)
    this.#meters.close(id)
    try {
      // A program that reads the disk would hold it.
      await this.worktrees.end(id)
      await destroySandbox({ id, paths: pathsOf(this.#options, id), groups, uidRanges, failpoint })
    } finally {
      this.#ending.delete(id)
      this.#throwAways.delete(id)
    }
  }
}

const BRIDGES = [
  { name: 'llm', port: LLM_PORT },
  { name: 'egress', port: EGRESS_PORT },
] as const

/** Clients of these doors dial a port, not a unix socket. */
function bridgesOf(doors: SandboxSpec['doors']): readonly GuestBridge[] {
  const wanted = BRIDGES.filter(({ name }) => doors.some((door) => door.name === name))
  return wanted.map(({ name, port }) => ({ port, socket: `${INSIDE.doors}/${name}/${DOOR_SOCKETS[name]}` }))
}
