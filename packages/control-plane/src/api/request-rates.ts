import { AirlockError, type Principal } from '@airlock/contract'
import { type Rate, TokenBucket } from '@airlock/std'

export interface RequestRateBounds {
  readonly perKey: Rate
  readonly perTenant: Rate
}

/** Of each kind. Whoever is forgotten starts with a full bucket, as somebody new does. */
const MAX_BUCKETS = 10_000

/** How often a key, and all of a tenant, may ask. Not for what takes away: that is always heard. */
export class RequestRates {
  readonly #keys: Buckets
  readonly #tenants: Buckets

  constructor({ perKey, perTenant }: RequestRateBounds) {
    this.#keys = new Buckets(perKey)
    this.#tenants = new Buckets(perTenant)
  }

  /** Throws `too_many_requests` when it was too often. */
  take({ tenant, actor }: Principal): void {
    throwOnWait(this.#keys.take(`${tenant} ${actor}`), 'This key asks too often.')
    throwOnWait(this.#tenants.take(tenant), 'The keys of this tenant together ask too often.')
  }
}

/** By name, a bounded number. */
export class Buckets {
  readonly #rate: Rate
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(rate: Rate) {
    this.#rate = rate
  }

  take(name: string): number {
    const known = this.#buckets.get(name)
    if (known) return known.take()
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined && this.#buckets.size >= MAX_BUCKETS) this.#buckets.delete(oldest)
    const fresh = new TokenBucket(this.#rate)
    this.#buckets.set(name, fresh)
    return fresh.take()
  }
}

function throwOnWait(seconds: number, message: string): void {
  if (seconds > 0) throw new AirlockError('too_many_requests', message, { retryAfterS: Math.ceil(seconds) })
}
