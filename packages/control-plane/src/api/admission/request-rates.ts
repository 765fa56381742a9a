import type { ServerResponse } from 'node:http'
import { AirlockError } from '@airlock/contract'
import { type Rate, TokenBucket } from '@airlock/std'
import { orGone } from './or-gone.ts'
import type { Holder } from './shares.ts'

export interface RequestRateBounds {
  readonly perKey: Rate
  readonly perTenant: Rate
}

/** Buckets of keys, and of tenants. A forgotten one starts full again. */
const MAX_BUCKETS = 10_000
/** Longest time for which a request is held back. A request that must wait longer is refused at the end of this time. */
const HOLD_S = 2

/** Request rates of keys and tenants. Requests that reduce are not counted. */
export class RequestRates {
  readonly #keys: Buckets
  readonly #tenants: Buckets

  constructor({ perKey, perTenant }: RequestRateBounds) {
    this.#keys = new Buckets(perKey)
    this.#tenants = new Buckets(perTenant)
  }

  /**
   * Waits until the rates allow one more request, at most `HOLD_S`; then throws `too_many_requests`. So a connection beyond its
   * rate gets few answers, refusals included. Throws when the response closes.
   */
  async pass({ tenant, actor }: Holder, response?: ServerResponse): Promise<void> {
    const key = this.#keys.find(`${tenant} ${actor}`)
    const ofKey = key.take(HOLD_S)
    const ofTenant = ofKey > HOLD_S ? 0 : this.#tenants.find(tenant).take(HOLD_S)
    if (ofTenant > HOLD_S) key.giveBack()
    const waitS = Math.max(ofKey, ofTenant)
    if (waitS > 0) await holdBack(Math.min(waitS, HOLD_S), response)
    if (ofKey > HOLD_S) throw refusal(ofKey, 'This key asks too often.')
    if (ofTenant > HOLD_S) throw refusal(ofTenant, 'The keys of this tenant together ask too often.')
  }
}

/** By name, a bounded number. */
export class Buckets {
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

/** Waits. Throws when the response closes. */
export async function holdBack(seconds: number, response?: ServerResponse): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, seconds * 1000)))
  const until = response ? orGone(over, response) : over
  await until.finally(() => clearTimeout(timer))
}

function refusal(seconds: number, message: string): AirlockError {
  return new AirlockError('too_many_requests', message, { retryAfterS: Math.ceil(seconds - HOLD_S) })
}
