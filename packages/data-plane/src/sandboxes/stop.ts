import type { AuditSink } from '@airlock/audit'
import { AirlockError, type EndReason, type StoppedSandbox } from '@airlock/contract'
import { rm } from 'node:fs/promises'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { DoorDirectories } from './door-directories.ts'
import { who } from './entry.ts'
import type { Places } from './places.ts'
import type { Registry } from './registry.ts'
import type { Seal } from './seal.ts'

export interface StopsOptions {
  readonly backend: IsolationBackend
  readonly registry: Registry
  readonly places: Places
  readonly doors: DoorDirectories
  readonly seal: Seal
  readonly audit: AuditSink
}

/** Ends sandboxes. */
export class Stops {
  readonly #options: StopsOptions

  constructor(options: StopsOptions) {
    this.#options = options
  }

  /** Resolves when the kernel shows nothing of it. Idempotent. Breaks a start off. `reason` is null where nobody says why. */
  async stop(id: string, reason: EndReason | null): Promise<StoppedSandbox> {
    const { registry } = this.#options
    const starting = registry.entries.get(id)?.starting
    starting?.abort(new AirlockError('sandbox_ended', 'The sandbox was ended while it started.'))
    return registry.turns.run(id, async () => this.#stopInTurn(id, reason))
  }

  async #stopInTurn(id: string, reason: EndReason | null): Promise<StoppedSandbox> {
    const { backend, registry, places, doors, seal, audit } = this.#options
    const entry = registry.entries.get(id)
    if (entry) entry.state = 'stopping'
    const stats = await backend.stats(id)
    await seal.seal(id, entry, reason)
    await backend.stop(id)
    await entry?.link.close()
    await doors.remove(id)
    await rm(places.runtimeDirOf(id), { recursive: true, force: true })
    registry.remove(id)
    const usage = stats ? { cpuMs: stats.cpuMs, memoryPeakBytes: stats.memoryPeakBytes } : null
    if (entry) audit.note({ ...who(entry), sandbox: id, point: 'isolation.stop', status: 'done', payload: { usage } })
    return { existed: entry !== undefined, usage }
  }
}
