import { AirlockError } from '@airlock/contract'
import { Pool } from 'undici'
import { connectorFor } from './connect.ts'

const MOST_POOLS = 256
const MAX_HEAD_BYTES = 16 * 1024
/** Bound on idle connections, also where the upstream allows more. */
const MOST_IDLE_MS = 60_000

export interface PoolSettings {
  readonly origin: string
  readonly connections: number
  readonly connectMs: number
  readonly firstByteMs: number
  readonly readMs: number
}

interface Entry {
  readonly pool: Pool
  users: number
}

/**
 * Connections to one upstream, apart for each tenant: no connection ever carries two. A connection is used again only after
 * an answer that was read whole, with nothing behind it. The tenant that is idle for longest makes room for another.
 */
export class TenantPools {
  readonly #settings: PoolSettings
  /** By tenant, the least recently used first. */
  readonly #pools = new Map<string, Entry>()

  constructor(settings: PoolSettings) {
    this.#settings = settings
  }

  /** The pool of a tenant, in use until `release`. */
  acquire(tenant: string): { readonly pool: Pool; release(): void } {
    const entry = this.#pools.get(tenant) ?? this.#add()
    this.#pools.delete(tenant)
    this.#pools.set(tenant, entry)
    entry.users += 1
    return { pool: entry.pool, release: () => void (entry.users -= 1) }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map(async ({ pool }) => pool.destroy()))
  }

  #add(): Entry {
    if (this.#pools.size >= MOST_POOLS) this.#dropIdle()
    const { origin, connections, connectMs, firstByteMs, readMs } = this.#settings
    const pool = new Pool(origin, {
      connections,
      pipelining: 1,
      allowH2: false,
      connect: connectorFor(origin, connectMs),
      headersTimeout: firstByteMs,
      bodyTimeout: readMs,
      keepAliveMaxTimeout: MOST_IDLE_MS,
      maxHeaderSize: MAX_HEAD_BYTES,
    })
    return { pool, users: 0 }
  }

  #dropIdle(): void {
    for (const [tenant, { pool, users }] of this.#pools) {
      if (users > 0) continue
      this.#pools.delete(tenant)
      void pool.destroy()
      return
    }
    throw new AirlockError('upstream_busy')
  }
}
