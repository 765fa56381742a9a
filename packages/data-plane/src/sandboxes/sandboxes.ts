import type { AuditSink } from '@airlock/audit'
import {
  AirlockError,
  doorEnv,
  type Failpoint,
  type FoundPath,
  type FreezeRequest,
  type FrozenSandboxes,
  isAirlockError,
  type Limits,
  type LookAtPathRequest,
  type NodeCommand,
  type NodeCommandSpec,
  type NodeDisk,
  type NodeMetrics,
  type NodeSandbox,
  type NodeSession,
  type NodeSessionSpec,
  type NodeStepSpec,
  type Permit,
  type StartedSandbox,
  type StoppedSandbox,
  toAirlockError,
} from '@airlock/contract'
import { Cleanup, type Clock, deadline, KeyedLock, type Log, waitFor } from '@airlock/std'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { Probes } from '../isolation/probe/probes.ts'
import { GuestLink } from '../session/guest-link.ts'
import type { DoorDirectories } from './door-directories.ts'
import { assertLiving, AWAKE, type Entry, isLiving, lose, who } from './entry.ts'
import { freezeAll } from './freeze-all.ts'
import { LimitChanges, processLimits } from './limits.ts'
import { Pauses } from './pauses.ts'
import { isInScope, PermitBans } from './permit-bans.ts'
import type { PermitDesk } from './permit-desk.ts'
import { throwOnWeakIsolation } from './required-isolation.ts'
import { readState, type SandboxState, writeState } from './state-file.ts'

const START_LIMIT_MS = 30_000
const WATCH_EVERY_MS = 500

export interface SandboxesOptions {
  readonly backend: IsolationBackend
  readonly probes: Probes
  readonly permits: PermitDesk
  readonly doors: DoorDirectories
  readonly audit: AuditSink
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  readonly bootId: string
  readonly stateDir: string
  readonly runtimeDir: string
  readonly capacity: number
}

/** The sandboxes of this node: each start and stop goes through here, one after another for one sandbox. */
export class Sandboxes {
  readonly #options: SandboxesOptions
  readonly #entries = new Map<string, Entry>()
  readonly #turns = new KeyedLock()
  readonly #watch: NodeJS.Timeout
  readonly #bans: PermitBans
  readonly #pauses: Pauses
  readonly #limits: LimitChanges

  constructor(options: SandboxesOptions) {
    this.#options = options
    const stateDirOf = (id: string) => this.#stateDir(id)
    this.#pauses = new Pauses({ ...options, stateDirOf })
    this.#limits = new LimitChanges({ ...options, stateDirOf })
    this.#bans = new PermitBans(options.clock)
    this.#watch = setInterval(() => void this.#look(), WATCH_EVERY_MS)
  }

  /** Starts what a permit allows. All or nothing; the permit is spent either way. */
  async start(token: string): Promise<StartedSandbox> {
    const permit = await this.#redeem(token)
    const { id, entry } = this.#enter(permit)
    return this.#turns.run(id, async () => {
      const undo = new Cleanup()
      undo.add('entry', () => void this.#entries.delete(id))
      try {
        const { image, isolation } = await this.#startInTurn(entry, undo)
        undo.release()
        return { id, image, isolation }
      } catch (cause) {
        for (const failure of await undo.run())
          this.#options.log.error('start left something behind', { sandbox: id, ...failure })
        throw cause
      }
    })
  }

  /** Ends a sandbox and resolves when the kernel shows nothing of it. Idempotent. */
  async stop(id: string): Promise<StoppedSandbox> {
    const entry = this.#entries.get(id)
    entry?.starting.abort(new AirlockError('sandbox_ended', 'The sandbox was ended while it started.'))
    return this.#turns.run(id, async () => {
      const { backend, audit } = this.#options
      const existed = this.#entries.has(id)
      if (entry) entry.state = 'stopping'
      const stats = await backend.stats(id)
      await backend.stop(id)
      await entry?.link.close()
      await this.#options.doors.remove(id)
      await rm(this.#runtimeDir(id), { recursive: true, force: true })
      this.#entries.delete(id)
      const usage = stats ? { cpuMs: stats.cpuMs, memoryPeakBytes: stats.memoryPeakBytes } : null
      if (existed)
        audit.note({ ...who(entry), sandbox: id, point: 'isolation.stop', status: 'done', payload: { usage } })
      return { existed, usage }
    })
  }

  /** Its processes stand still when this resolves, and their deadlines with them. Idempotent; outlives this process. */
  async pause(id: string): Promise<void> {
    await this.#turns.run(id, async () => this.#pauses.pause(id, this.#living(id)))
  }

  /** Idempotent. The guest hears how long it slept before it wakes. */
  async resume(id: string): Promise<void> {
    await this.#turns.run(id, async () => this.#pauses.resume(id, this.#living(id)))
  }

  /** The kernel holds it to what this answers. All or nothing; also while it is paused. */
  async changeLimits(id: string, limits: Limits): Promise<Limits> {
    return this.#turns.run(id, async () => this.#limits.change(id, this.#living(id), limits))
  }

  /**
   * For a kill: everything in scope stands still, and permits signed before are worthless. What is being started is only named:
   * no code of users runs there yet, and a launcher that stands still could not be broken off.
   */
  async freeze(scope: FreezeRequest): Promise<FrozenSandboxes> {
    const { backend, log } = this.#options
    this.#bans.add(scope)
    const inScope = [...this.#entries].filter(([, { permit }]) => isInScope(scope, permit))
    const isStarting = ([, { state }]: (typeof inScope)[number]) => state === 'starting'
    const standing = inScope.filter((one) => !isStarting(one)).map(([id]) => id)
    const starting = inScope.filter(isStarting).map(([id]) => ({ id, frozenMs: null, processes: null }))
    return { sandboxes: [...(await freezeAll(backend, standing, log)), ...starting] }
  }

  list(): readonly NodeSandbox[] {
    return [...this.#entries].map(([id, entry]) => ({
      id,
      tenant: entry.permit.tenant,
      agent: entry.permit.agent,
      state: entry.state,
      lostReason: entry.lostReason,
      ...(entry.lostFor ? { lostFor: entry.lostFor } : {}),
      runningCommands: entry.link.runningCount,
      limits: entry.limits,
    }))
  }

  async lookAtPath(asked: LookAtPathRequest): Promise<FoundPath> {
    return this.#options.backend.hostPaths.look(asked)
  }

  async readDisk(): Promise<NodeDisk> {
    const { backend } = this.#options
    return backend.hostDisk.read(async () => backend.takenBytes())
  }

  /** What the kernel says of everything that lives, taken when it is asked for. */
  async metrics(): Promise<NodeMetrics> {
    const began = performance.now()
    const living = [...this.#entries].filter(([, entry]) => isLiving(entry)).map(([id]) => id)
    const samples = await this.#options.backend.sample(living)
    const at = this.#options.clock.now()
    return { samples: samples.map((sample) => ({ ...sample, at })), tookMs: Math.round(performance.now() - began) }
  }

  /** Images that something stands on, or is about to. */
  imagesInUse(): ReadonlySet<string> {
    return new Set([...this.#entries.values()].flatMap(({ image, permit }) => [image ?? permit.image, permit.image]))
  }

  /** The way into a running sandbox. */
  link(id: string): GuestLink {
    const entry = this.#entries.get(id)
    if (!entry) throw new AirlockError('sandbox_not_found')
    if (entry.state === 'lost') throw new AirlockError('guest_lost')
    if (entry.state === 'paused') throw new AirlockError('sandbox_paused')
    if (entry.state !== 'running') throw new AirlockError('sandbox_not_active')
    return entry.link
  }

  /** The way to what a sandbox has said so far, also while it is paused. */
  said(id: string): GuestLink {
    const entry = this.#entries.get(id)
    return entry?.state === 'paused' ? entry.link : this.link(id)
  }

  /** Runs a command with the environment that was given to the sandbox under its own. */
  async run(id: string, spec: NodeCommandSpec): Promise<NodeCommand> {
    this.#options.backend.hostDisk.assertRoomForOutput()
    const env = this.#env(id, spec.env)
    const limits = processLimits(this.#living(id), spec.limits)
    return this.link(id).run({ ...spec, env, timeoutMs: this.#timeout(id, spec), ...limits })
  }

  /** Gives code to an interpreter. */
  async step(id: string, session: string, spec: NodeStepSpec): Promise<NodeCommand> {
    this.#options.backend.hostDisk.assertRoomForOutput()
    return this.link(id).step(session, { ...spec, timeoutMs: this.#timeout(id, spec) })
  }

  /** Starts an interpreter with the same environment under its own. */
  async openSession(id: string, spec: NodeSessionSpec): Promise<NodeSession> {
    const env = this.#env(id, spec.env)
    return this.link(id).openSession({ ...spec, env, ...processLimits(this.#living(id)) })
  }

  /**
   * After a start of ours: what lives is kept, what was started and died is `lost` until somebody ends it, and what
   * nobody was told about is destroyed.
   */
  async adopt(): Promise<void> {
    const { backend, stateDir, runtimeDir, audit, log } = this.#options
    for (const id of await readdir(join(stateDir, 'sandboxes')).catch(() => [])) {
      const state = await readState(this.#stateDir(id))
      if (state?.isolation) await this.#adoptOne(id, state)
    }
    const reaped = await backend.reap(new Set(this.#entries.keys()))
    for (const id of reaped) {
      log.warn('removed the remains of a sandbox', { sandbox: id })
      audit.note({ tenant: 'system', actor: 'system', sandbox: id, point: 'isolation.reap', status: 'done' })
    }
    await this.#options.doors.removeAllBut(new Set(this.#entries.keys()))
    for (const id of await readdir(join(runtimeDir, 'sandboxes')).catch(() => []))
      if (!this.#entries.has(id)) await rm(this.#runtimeDir(id), { recursive: true, force: true })
  }

  /** Leaves the sandboxes running. */
  async close(): Promise<void> {
    clearInterval(this.#watch)
    await Promise.all([...this.#entries.values()].map((entry) => entry.link.close()))
  }

  async #redeem(token: string): Promise<Permit> {
    try {
      const permit = await this.#options.permits.redeem(token)
      if (this.#bans.covers(permit)) throw new AirlockError('permit_rejected', 'The permit is from before a kill.')
      this.#assertCurrent(permit)
      return permit
    } catch (cause) {
      const { code, message } = toAirlockError(cause)
      this.#options.audit.note({
        tenant: 'system',
        actor: 'system',
        point: 'permit.refuse',
        status: 'denied',
        error: { code, message },
      })
      throw cause
    }
  }

  /** Whoever was fenced off by a newer generation of its agent starts nothing beside it. */
  #assertCurrent(permit: Permit): void {
    for (const { permit: other } of this.#entries.values())
      if (other.tenant === permit.tenant && other.agent === permit.agent && other.generation > permit.generation)
        throw new AirlockError('permit_rejected', 'The permit is of an old generation of its agent.')
  }

  #enter(permit: Permit): { id: string; entry: Entry } {
    const id = permit.sandbox
    const { backend, capacity } = this.#options
    if (this.#entries.has(id)) throw new AirlockError('permit_rejected', 'The sandbox exists.')
    if (this.#entries.size >= capacity) throw new AirlockError('capacity_exhausted', undefined, { retryAfterS: 5 })
    if (!backend.capabilities.tiers.includes(permit.tier))
      throw new AirlockError('isolation_unavailable', `This node has no ${permit.tier} tier.`)
    if (permit.mounts.some(({ mode }) => mode === 'rw') && !backend.capabilities.mounts.includes('idmap'))
      throw new AirlockError('isolation_unavailable', 'This node cannot mount anything for writing.')
    const entry: Entry = {
      permit,
      link: this.#newLink(id),
      starting: new AbortController(),
      state: 'starting',
      image: null,
      lostReason: null,
      pausedAt: null,
      sleptMs: 0,
      limits: permit.limits,
      isOld: false,
    }
    this.#entries.set(id, entry)
    return { id, entry }
  }

  async #startInTurn(entry: Entry, undo: Cleanup): Promise<Omit<StartedSandbox, 'id'>> {
    const { backend, failpoint, bootId, audit } = this.#options
    const { permit, link, limits } = entry
    const id = permit.sandbox
    const signal = deadline(START_LIMIT_MS, entry.starting.signal)
    await failpoint('create.permit-claimed')
    const probe = await this.#options.probes.of(permit.tier, permit.image, signal)
    undo.add('directories', () => rm(this.#runtimeDir(id), { recursive: true, force: true }))
    undo.add('doors', () => this.#options.doors.remove(id))
    undo.add('sandbox', () => backend.stop(id))
    undo.add('link', () => link.close())
    await mkdir(this.#stateDir(id), { recursive: true, mode: 0o700 })
    await writeState(this.#stateDir(id), { permit, bootId, isolation: null, image: null, limits, ...AWAKE })
    await failpoint('create.state-written')
    await mkdir(this.#controlDir(id), { recursive: true, mode: 0o711 })
    await link.listen()
    const { tier, mounts } = permit
    const doors = await this.#options.doors.make(id, permit.doors)
    const spec = { id, limits, image: permit.image, tier, mounts, doors, controlDir: this.#controlDir(id) }
    const { isolation: found, image } = await backend.start(spec, signal)
    const isolation = { ...found, probe }
    throwOnWeakIsolation(isolation, tier)
    await this.#waitForGuest(id, link, signal)
    await failpoint('create.guest-attached')
    const what = {
      sandbox: id,
      point: 'isolation.start',
      status: 'done',
      payload: { isolation, image, mounts },
    } as const
    // Both must be on disk before anybody is told; neither needs the other.
    await Promise.all([
      writeState(this.#stateDir(id), { permit, bootId, isolation, image, limits, ...AWAKE }),
      audit.require({ ...who(entry), ...what }),
    ])
    entry.state = 'running'
    entry.image = image
    return { image, isolation }
  }

  /** A guest that died will never attach: that is noticed at once, not at the end of the time it has. */
  async #waitForGuest(id: string, link: GuestLink, signal: AbortSignal): Promise<void> {
    const { backend } = this.#options
    const over = new AbortController()
    const gone = async () => ((await backend.adopt(id)) ? undefined : 'gone')
    const died = waitFor(gone, { signal: AbortSignal.any([signal, over.signal]), everyMs: 50 }).then(() => {
      throw new AirlockError('start_failed', 'The guest ended as soon as it started.')
    })
    try {
      await Promise.race([link.waitForGuest(signal), died])
    } catch (cause) {
      throw isAirlockError(cause) ? cause : new AirlockError('start_failed', 'The guest did not come up.', { cause })
    } finally {
      over.abort()
      // It lost the race: nobody waits for its answer any more.
      died.catch(() => undefined)
    }
  }

  async #adoptOne(id: string, state: SandboxState): Promise<void> {
    const { backend, bootId, clock } = this.#options
    const link = this.#newLink(id)
    // We may have died between stopping it and writing that down: it is left as it stands, and the control plane knows why.
    const pausedAt = state.pausedAt ?? ((await backend.isFrozen(id)) ? clock.now() : null)
    const entry: Entry = {
      permit: state.permit,
      link,
      starting: new AbortController(),
      state: pausedAt === null ? 'running' : 'paused',
      image: state.image,
      lostReason: null,
      pausedAt,
      sleptMs: state.sleptMs,
      limits: state.limits ?? state.permit.limits,
      isOld: state.limits === null,
    }
    this.#entries.set(id, entry)
    if (state.bootId !== bootId) return lose(entry, 'host_restarted')
    if (!(await backend.adopt(id))) return this.#bury(id, entry)
    link.saySlept(state.sleptMs)
    await this.#limits.adopt(id, entry)
    if (entry.state === 'paused') {
      // The same with waking it: then nobody was told that it goes on.
      link.hold()
      await backend.freeze(id)
    }
    await mkdir(this.#controlDir(id), { recursive: true, mode: 0o711 })
    await link.listen()
  }

  #living(id: string): Entry {
    const entry = this.#entries.get(id)
    assertLiving(entry)
    return entry
  }

  #newLink(id: string): GuestLink {
    const { clock, log, failpoint, backend } = this.#options
    return new GuestLink({
      sandbox: id,
      controlDir: this.#controlDir(id),
      spoolDir: join(this.#stateDir(id), 'commands'),
      clock,
      log,
      failpoint,
      usageOf: async (session) => (await backend.groupUsage(id, session)) ?? null,
      strainOf: (session) => backend.strain(id, session) ?? null,
      isDiskFull: async () => this.#isDiskFull(id),
      onOverdue: (command) => {
        log.error('the guest did not end a command in time', { sandbox: id, command })
        void this.#endFromOutside(id, 'guest_lost')
      },
    })
  }

  /** That something failed is told even where the disk cannot be asked. */
  #isDiskFull(id: string): boolean {
    try {
      return this.#options.backend.isDiskFull(id)
    } catch (error) {
      this.#options.log.warn('how full the disk of a sandbox is cannot be told', { sandbox: id, error })
      return false
    }
  }

  /** Notices deaths, and ends what has outlived its permit even when no control plane is left to ask for it. */
  async #look(): Promise<void> {
    for (const [id, entry] of this.#entries) {
      if (!isLiving(entry)) continue
      if (this.#options.clock.now() >= entry.permit.endsAt) void this.#endFromOutside(id, 'max_lifetime')
      else if (!(await this.#options.backend.adopt(id)) && isLiving(entry)) this.#bury(id, entry)
    }
  }

  /** Its guest is dead; its groups still know what it was denied. */
  #bury(id: string, entry: Entry): void {
    entry.lostFor = this.#options.backend.lostFor(id, entry.permit.tier)
    lose(entry, 'guest_lost')
  }

  /** Kills it now; the entry stays, `lost`, until the control plane has seen why and ends it. */
  async #endFromOutside(id: string, reason: 'guest_lost' | 'max_lifetime'): Promise<void> {
    const entry = this.#entries.get(id)
    if (!entry || !isLiving(entry)) return
    lose(entry, reason)
    await this.#turns
      .run(id, () => this.#options.backend.stop(id))
      .catch((error: unknown) => {
        this.#options.log.error('a sandbox would not die', { sandbox: id, error })
      })
  }

  /** What the permit bounds is bounded here again. */
  #timeout(id: string, { timeoutMs }: { readonly timeoutMs: number }): number {
    return Math.min(timeoutMs, this.#entries.get(id)?.permit.conditions.maxTimeoutMs ?? timeoutMs)
  }

  /** What the caller gives over what the sandbox was given; who it is and where its door is, nobody changes. */
  #env(id: string, given: Permit['env']): Permit['env'] {
    const permit = this.#entries.get(id)?.permit
    return permit ? { ...permit.env, ...given, ...doorEnv(permit) } : given
  }

  #stateDir(id: string): string {
    return join(this.#options.stateDir, 'sandboxes', id)
  }

  #runtimeDir(id: string): string {
    return join(this.#options.runtimeDir, 'sandboxes', id)
  }

  #controlDir(id: string): string {
    return join(this.#runtimeDir(id), 'control')
  }
}
