import type { AuditSink } from '@airlock/audit'
import { AirlockError, sandboxId } from '@airlock/contract'
import type { Clock, Log } from '@airlock/std'
import { mkdir, readdir, rm } from 'node:fs/promises'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { DoorDirectories } from './door-directories.ts'
import { bury, type Entry, lose } from './entry.ts'
import type { GuestLinks } from './guest-links.ts'
import type { LimitChanges } from './limits.ts'
import type { Places } from './places.ts'
import type { Registry } from './registry.ts'
import { readState, type SandboxState } from './state-file.ts'

export interface AdoptOptions {
  readonly backend: IsolationBackend
  readonly registry: Registry
  readonly places: Places
  readonly links: GuestLinks
  readonly limits: LimitChanges
  readonly doors: DoorDirectories
  readonly audit: AuditSink
  readonly clock: Clock
  readonly log: Log
  readonly bootId: string
}

/**
 * After a start of ours: what lives is kept, what was started and died is `lost` until somebody ends it, and what
 * nobody was told about is destroyed. Files of one sandbox that cannot be used end that sandbox and no other.
 */
export async function adopt(options: AdoptOptions): Promise<void> {
  const { backend, registry, places, doors, audit, log } = options
  for (const id of await readdir(places.stateRoot).catch(() => []))
    await adoptOne(id, options).catch((error: unknown) => giveUp(id, error, options))
  const kept = new Set(registry.entries.keys())
  for (const id of await backend.reap(kept)) {
    log.warn('removed the remains of a sandbox', { sandbox: id })
    const payload = registry.damaged.has(id) ? { cause: 'state_damaged' } : {}
    audit.note({ tenant: 'system', actor: 'system', sandbox: id, point: 'isolation.reap', status: 'done', payload })
  }
  await doors.removeAllBut(kept)
  for (const id of await readdir(places.runtimeRoot).catch(() => []))
    if (!kept.has(id)) await rm(places.runtimeDirOf(id), { recursive: true, force: true })
}

async function adoptOne(id: string, options: AdoptOptions): Promise<void> {
  const state = await readState(options.places.stateDirOf(id))
  if (state === 'damaged') throw new AirlockError('disk_failed', 'sandbox.json cannot be read.')
  if (state?.isolation) await adoptStarted(id, state, options)
}

/** Fails closed: its tenant, limits or commands are not known, so it ends. The control plane hears of it and alerts. */
function giveUp(id: string, error: unknown, { registry, log }: AdoptOptions): void {
  log.error('the files of a sandbox cannot be used: it ends', { sandbox: id, error })
  const entry = registry.entries.get(id)
  if (entry) {
    entry.lostFor = 'state_damaged'
    lose(entry, 'guest_lost')
  } else if (sandboxId.safeParse(id).success) registry.damaged.add(id)
}

async function adoptStarted(id: string, state: SandboxState, options: AdoptOptions): Promise<void> {
  const { backend, registry, places, limits, bootId } = options
  const entry = await entryOf(id, state, options)
  registry.adopt(id, entry)
  if (state.bootId !== bootId) return lose(entry, 'host_restarted')
  if (!(await backend.adopt(id))) return bury(id, entry, backend)
  entry.link.saySlept(state.sleptMs)
  await limits.adopt(id, entry)
  if (entry.state === 'paused') {
    // We may have died between waking it and writing that down: then nobody was told that it goes on.
    entry.link.hold()
    await backend.freeze(id)
  }
  await mkdir(places.controlDirOf(id), { recursive: true, mode: 0o711 })
  await entry.link.listen()
}

async function entryOf(id: string, state: SandboxState, { backend, links, clock }: AdoptOptions): Promise<Entry> {
  // We may have died between stopping it and writing that down: it is left as it stands, and the control plane knows why.
  const pausedAt = state.pausedAt ?? ((await backend.isFrozen(id)) ? clock.now() : null)
  return {
    permit: state.permit,
    link: links.make(id, state.permit.tenant),
    starting: new AbortController(),
    state: pausedAt === null ? 'running' : 'paused',
    image: state.image,
    lostReason: null,
    pausedAt,
    sleptMs: state.sleptMs,
    limits: state.limits ?? state.permit.limits,
    isOld: state.limits === null,
  }
}
