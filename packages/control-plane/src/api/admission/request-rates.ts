import type { ServerResponse } from 'node:http'
import { AirlockError } from '@airlock/contract'
import { type Rate, TokenBucket } from '@airlock/std'
import { orGone } from './or-gone.ts'
import type { Holder } from './shares.ts'

export interface RequestRateBounds {
  readonly perKey: Rate
  readonly perTenant: Rate
}

/** Of each kind. Whoever is forgotten starts with a full bucket, as somebody new does. */
const MAX_BUCKETS = 10_000
/** How long a request that is too early is held back; one that is earlier still is refused after that time, not at once. */
const HOLD_S = 2

/** How often a key, and all of a tenant, may ask. Not for what takes away: that is always heard. */
export class RequestRates {
  readonly #keys: Buckets
  readonly #tenants: Buckets

  constructor({ perKey, perTenant }: RequestRateBounds) {
    this.#keys = new Buckets(perKey)
    this.#tenants = new Buckets(perTenant)
  }

  /**
   * Waits until the rates allow one more, for a bounded time; then throws `too_many_requests`. Either way whoever asks too often
   * waits with its connection, and asks no more often than it is answered. It no longer waits once the response is closed.
   */
  async pass({ tenant, actor }: Holder, response?: ServerResponse): Promise<void> {
    const key = this.#keys.find(`${tenant} ${actor}`)
    const ofKey = key.take(HOLD_S)
    const ofTenant = ofKey > HOLD_S ? 0 : this.#tenants.find(tenant).take(HOLD_S)
    if (ofTenant > HOLD_S) key.giveBack()
    const waitS = Math.max(ofKey, ofTenant)
    if (waitS > 0) await held(Math.min(waitS, HOLD_S), response)
    if (ofKey > HOLD_S) throw refusal(ofKey, 'This key asks too often.')
    if (ofTenant > HOLD_S) throw refusal(ofTenant, 'The keys of this tenant together ask too often.')
  }
}

class Buckets {
  readonly #rate: Rate
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(rate: Rate) {
    this.#rate = rate
  }

  find(name: string): TokenBucket {
    const known = this.#buckets.get(name)
    if (known) return known
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined && this.#buckets.size >= MAX_BUCKETS) this.#buckets.delete(oldest)
    const fresh = new TokenBucket(this.#rate)
    this.#buckets.set(name, fresh)
    return fresh
  }
}

async function held(seconds: number, response: ServerResponse | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, seconds * 1000)))
  const until = response ? orGone(over, response) : over
  await until.finally(() => clearTimeout(timer))
}

function refusal(seconds: number, message: string): AirlockError {
  return new AirlockError('too_many_requests', message, { retryAfterS: Math.ceil(seconds - HOLD_S) })
}
