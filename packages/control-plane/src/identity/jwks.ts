import { AirlockError } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'

const FETCH_MS = 5_000
const MOST_BYTES = 256 * 1024
const MOST_KEYS = 100
/** Older keys are not believed: one that was withdrawn would open doors for ever. */
const MOST_AGE_MS = 10 * 60_000
/** From here on they are fetched beside the requests, so that a short outage is not noticed. */
const REFRESH_AGE_MS = 5 * 60_000
/** Between two fetches for a key that we do not know, or after one that failed: anyone can name a key. */
const PAUSE_MS = 10_000
const MISS_MS = 60_000
const MOST_MISSES = 1_000

/** Public keys of an issuer, as they are now. `version` changes when they do. */
export interface KeySet {
  readonly version: number
  readonly getKey: JWTVerifyGetKey
}

export interface KeySource {
  /** Throws `identity_unavailable` when they cannot be had. `kid` is the key that a token names. */
  current(kid: string | undefined): Promise<KeySet>
}

const jwks = z.object({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string().optional() })).max(MOST_KEYS) })
const PUBLIC_KINDS: ReadonlySet<string> = new Set(['RSA', 'EC', 'OKP'])

/** Fails closed: what has no public key is an error. Secrets in there are left out: whoever can read them could sign. */
function parseKeys(text: string): JSONWebKeySet {
  const parsed = jwks.safeParse(JSON.parse(text))
  const keys = parsed.data?.keys.filter((key) => PUBLIC_KINDS.has(key.kty)) ?? []
  if (keys.length === 0) throw new AirlockError('identity_unavailable', 'The keys of the issuer are not a JWKS.')
  return { keys } as JSONWebKeySet
}

/** Keys from a file, for as long as we run. */
export function fixedKeys(text: string): KeySource {
  const set = { version: 1, getKey: createLocalJWKSet(parseKeys(text)) }
  return { current: async () => set }
}

interface Fetched extends KeySet {
  readonly text: string
  readonly kids: ReadonlySet<string>
  readonly at: number
}

/** Keys from the issuer's URL: cached, renewed, and asked for again when a token names one that is new. */
export class FetchedKeys implements KeySource {
  readonly #url: string
  readonly #clock: Clock
  readonly #fetch: typeof globalThis.fetch
  readonly #misses = new Map<string, number>()
  #keys: Fetched | undefined
  #fetching: Promise<Fetched> | undefined
  #failedAt: number | undefined
  #searchedAt: number | undefined

  constructor(options: { readonly url: string; readonly clock: Clock; readonly fetch?: typeof globalThis.fetch }) {
    this.#url = options.url
    this.#clock = options.clock
    this.#fetch = options.fetch ?? globalThis.fetch
  }

  async current(kid: string | undefined): Promise<KeySet> {
    const keys = await this.#fresh()
    if (kid === undefined || keys.kids.has(kid) || !this.#maySearch(kid)) return keys
    this.#searchedAt = this.#clock.now()
    const again = await this.#renew()
    if (!again.kids.has(kid)) this.#miss(kid)
    return again
  }

  async #fresh(): Promise<Fetched> {
    const keys = this.#keys
    const age = keys ? this.#clock.now() - keys.at : Number.POSITIVE_INFINITY
    if (!keys || age > MOST_AGE_MS) return this.#renew()
    // Whoever comes after them notices if it goes on to fail.
    if (age > REFRESH_AGE_MS) this.#renew().catch(() => undefined)
    return keys
  }

  /** One search for each name, and not many in a row for whatever names. */
  #maySearch(kid: string): boolean {
    const now = this.#clock.now()
    const missedAt = this.#misses.get(kid)
    if (missedAt !== undefined && now - missedAt < MISS_MS) return false
    return this.#searchedAt === undefined || now - this.#searchedAt >= PAUSE_MS
  }

  #miss(kid: string): void {
    const [oldest] = this.#misses.keys()
    if (this.#misses.size >= MOST_MISSES && oldest !== undefined) this.#misses.delete(oldest)
    this.#misses.set(kid, this.#clock.now())
  }

  /** Callers at the same time share one fetch; after a failure there is a pause in which nobody can be told apart. */
  async #renew(): Promise<Fetched> {
    const now = this.#clock.now()
    if (this.#failedAt !== undefined && now - this.#failedAt < PAUSE_MS) throw new AirlockError('identity_unavailable')
    this.#fetching ??= this.#load().finally(() => (this.#fetching = undefined))
    return this.#fetching
  }

  async #load(): Promise<Fetched> {
    try {
      const text = await this.#download()
      const set = parseKeys(text)
      const isSame = this.#keys?.text === text
      const version = (this.#keys?.version ?? 0) + (isSame ? 0 : 1)
      const kids = new Set(set.keys.flatMap((key) => (key.kid === undefined ? [] : [key.kid])))
      const getKey = isSame && this.#keys ? this.#keys.getKey : createLocalJWKSet(set)
      this.#keys = { version, text, kids, getKey, at: this.#clock.now() }
      this.#failedAt = undefined
      return this.#keys
    } catch (cause) {
      this.#failedAt = this.#clock.now()
      throw new AirlockError('identity_unavailable', undefined, { cause })
    }
  }

  /** Bounded in time and size; a redirect could lead anywhere. */
  async #download(): Promise<string> {
    const response = await this.#fetch(this.#url, {
      redirect: 'error',
      signal: AbortSignal.timeout(FETCH_MS),
      headers: { accept: 'application/json' },
    })
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of response.body ?? []) {
      size += chunk.length
      if (size > MOST_BYTES) throw new AirlockError('identity_unavailable', 'The keys of the issuer are too many.')
      chunks.push(chunk)
    }
    if (!response.ok) throw new AirlockError('identity_unavailable', `The issuer answered ${response.status}.`)
    return Buffer.concat(chunks).toString('utf8')
  }
}
