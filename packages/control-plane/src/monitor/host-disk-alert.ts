import type { AlertLevel } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import type { HostDiskLevel } from '../nodes/readiness.ts'
import { listPlatformTenants } from '../store/api-keys.ts'
import { nameOf } from './sandbox-watch.ts'

const LEVEL = { good: null, low: 'warning', full: 'critical' } as const satisfies Record<
  HostDiskLevel,
  AlertLevel | null
>
const RANK = { good: 0, low: 1, full: 2 } as const satisfies Record<HostDiskLevel, number>

type World = Pick<Context, 'store' | 'node' | 'readiness' | 'audit' | 'webhooks' | 'clock' | 'log'>

/**
 * Tells who runs the server that the disk of the host is near its reserve, or has only that left: in the log, in the evidence of
 * the system and to the webhooks of tenants with keys of the platform. It is raised at once, and eased when it stays better.
 */
export class HostDiskAlert {
  readonly #world: World
  readonly #sustained: number
  #told: HostDiskLevel = 'good'
  #better = 0

  constructor(world: World, options: { readonly sustained: number }) {
    this.#world = world
    this.#sustained = options.sustained
  }

  /** Never waits and never throws. */
  look(): void {
    const level = this.#world.readiness.hostDisk
    if (level === this.#told) this.#better = 0
    else if (RANK[level] > RANK[this.#told] || ++this.#better >= this.#sustained) this.#tell(level)
  }

  #tell(to: HostDiskLevel): void {
    const { audit, readiness, node, log, clock } = this.#world
    const { freeBytes, reserveBytes } = readiness.node().disk
    const [level, was] = [LEVEL[to], LEVEL[this.#told]]
    const change = nameOf(level, was)
    this.#told = to
    this.#better = 0
    const what = { resource: 'host_disk', level, was, freeBytes, reserveBytes }
    log.warn('the disk of the host', { change, ...what })
    const payload = { ...what, node: node.id, cleared: level === null }
    audit.note({ tenant: 'system', actor: 'system', point: 'monitor.alert', status: 'done', payload })
    const at = new Date(clock.now()).toISOString()
    void this.#send({ change, node: node.id, ...what, at })
  }

  async #send(payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { store, webhooks, clock, log } = this.#world
    try {
      for (const tenant of await store.query((db) => listPlatformTenants(db, clock.now())))
        webhooks.send(tenant, 'alert', payload)
    } catch (error) {
      log.warn('webhooks are not told of the disk of the host', { error })
    }
  }
}
