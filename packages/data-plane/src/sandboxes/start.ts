import type { AuditSink } from '@airlock/audit'
import {
  AirlockError,
  type Failpoint,
  isAirlockError,
  type Permit,
  type StartedSandbox,
  toAirlockError,
} from '@airlock/contract'
import { Cleanup, deadline, type Log, waitFor } from '@airlock/std'
import { mkdir, rm } from 'node:fs/promises'
import type { IsolationBackend } from '../isolation/backend.ts'
import { START_LIMIT_MS } from '../isolation/guarded-backend.ts'
import type { Probes } from '../isolation/probe/probes.ts'
import type { GuestLink } from '../session/guest-link.ts'
import type { DoorDirectories } from './door-directories.ts'
import { AWAKE, type Entry, who } from './entry.ts'
import type { GuestLinks } from './guest-links.ts'
import type { PermitBans } from './permit-bans.ts'
import type { PermitDesk } from './permit-desk.ts'
import type { Places } from './places.ts'
import type { Registry } from './registry.ts'
import { throwOnWeakIsolation } from './required-isolation.ts'
import { writeState } from './state-file.ts'

export interface StartsOptions {
  readonly backend: IsolationBackend
  readonly probes: Probes
  readonly permits: PermitDesk
  readonly bans: PermitBans
  readonly registry: Registry
  readonly places: Places
  readonly links: GuestLinks
  readonly doors: DoorDirectories
  readonly audit: AuditSink
  readonly log: Log
  readonly failpoint: Failpoint
  readonly bootId: string
}

/** Starts what permits allow. */
export class Starts {
  readonly #options: StartsOptions

  constructor(options: StartsOptions) {
    this.#options = options
  }

  /** All or nothing; the permit is spent either way. */
  async start(token: string): Promise<StartedSandbox> {
    const { registry, log } = this.#options
    const permit = await this.#redeem(token)
    const id = permit.sandbox
    const entry = this.#enter(permit)
    return registry.turns.run(id, async () => {
      const undo = new Cleanup()
      undo.add('entry', () => registry.remove(id))
      try {
        const { image, isolation } = await this.#startInTurn(entry, undo)
        undo.release()
        return { id, image, isolation }
      } catch (cause) {
        for (const failure of await undo.run()) log.error('start left something behind', { sandbox: id, ...failure })
        throw cause
      }
    })
  }

  async #redeem(token: string): Promise<Permit> {
    const { permits, bans, registry, audit } = this.#options
    try {
      const permit = await permits.redeem(token)
      if (bans.covers(permit)) throw new AirlockError('permit_rejected', 'The permit is from before a kill.')
      registry.assertCurrent(permit)
      return permit
    } catch (cause) {
      const { code, message } = toAirlockError(cause)
      const what = { point: 'permit.refuse', status: 'denied', error: { code, message } } as const
      audit.note({ tenant: 'system', actor: 'system', ...what })
      throw cause
    }
  }

  #enter(permit: Permit): Entry {
    const { registry, links } = this.#options
    this.#assertPossible(permit)
    const entry: Entry = {
      permit,
      link: links.make(permit.sandbox, permit.tenant),
      starting: new AbortController(),
      state: 'starting',
      image: null,
      lostReason: null,
      pausedAt: null,
      sleptMs: 0,
      limits: permit.limits,
      isOld: false,
    }
    registry.enter(permit.sandbox, entry)
    return entry
  }

  #assertPossible({ tier, mounts }: Permit): void {
    const { capabilities } = this.#options.backend
    if (!capabilities.tiers.includes(tier))
      throw new AirlockError('isolation_unavailable', `This node has no ${tier} tier.`)
    if (mounts.some(({ mode }) => mode === 'rw') && !capabilities.mounts.includes('idmap'))
      throw new AirlockError('isolation_unavailable', 'This node cannot mount anything for writing.')
  }

  async #startInTurn(entry: Entry, undo: Cleanup): Promise<Omit<StartedSandbox, 'id'>> {
    const { probes, failpoint, places, bootId, audit } = this.#options
    const { permit, limits } = entry
    const id = permit.sandbox
    const signal = deadline(START_LIMIT_MS, entry.starting.signal)
    await failpoint('create.permit-claimed')
    const probe = await probes.of(permit.tier, permit.image, signal)
    this.#undoStart(entry, undo)
    await mkdir(places.stateDirOf(id), { recursive: true, mode: 0o700 })
    const state = { permit, bootId, limits, ...AWAKE }
    await writeState(places.stateDirOf(id), { ...state, isolation: null, image: null })
    await failpoint('create.state-written')
    const { isolation: found, image } = await this.#startIsolated(entry, signal)
    const isolation = { ...found, probe }
    throwOnWeakIsolation(isolation, permit.tier)
    await this.#waitForGuest(id, entry.link, signal)
    await failpoint('create.guest-attached')
    await this.#placeWorktree(permit, signal)
    const payload = { isolation, image, mounts: permit.mounts }
    // Both must be on disk before anybody is told; neither needs the other.
    await Promise.all([
      writeState(places.stateDirOf(id), { ...state, isolation, image }),
      audit.require({ ...who(entry), sandbox: id, point: 'isolation.start', status: 'done', payload }),
    ])
    entry.state = 'running'
    entry.image = image
    return { image, isolation }
  }

  #undoStart({ permit: { sandbox: id }, link }: Entry, undo: Cleanup): void {
    const { backend, doors, places } = this.#options
    undo.add('directories', () => rm(places.runtimeDirOf(id), { recursive: true, force: true }))
    undo.add('doors', () => doors.remove(id))
    undo.add('sandbox', () => backend.stop(id))
    undo.add('link', () => link.close())
  }

  async #startIsolated({ permit, link, limits }: Entry, signal: AbortSignal) {
    const { backend, places } = this.#options
    const { sandbox: id, tier, image } = permit
    const mounts = permit.mounts.filter(({ mode }) => mode !== 'worktree')
    const controlDir = places.controlDirOf(id)
    await mkdir(controlDir, { recursive: true, mode: 0o711 })
    await link.listen()
    const doors = await this.#options.doors.make(id, permit.doors)
    return await backend.start({ id, limits, image, tier, mounts, doors, controlDir }, signal)
  }

  /** Before its start is answered: no code of the user has run by then. */
  async #placeWorktree({ sandbox: id, mounts }: Permit, signal: AbortSignal): Promise<void> {
    const worktree = mounts.find(({ mode }) => mode === 'worktree')
    if (worktree) await this.#options.backend.worktrees.place(id, worktree, signal)
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
}
