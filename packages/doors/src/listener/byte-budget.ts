import { AirlockError } from '@airlock/contract'

const KIB = 1024
/** The first bytes of each body. They have a pool of their own, so that large bodies keep no small one out. */
const SMALL_BYTES = 64 * KIB

/** Bytes that are held at once, divided between tenants: one tenant holds at most half of what the others leave. */
export class TenantBytes {
  readonly #most: number
  readonly #tenants = new Map<string, number>()
  #held = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Takes the bytes, or takes nothing and answers false. */
  take(tenant: string, bytes: number): boolean {
    const own = this.#tenants.get(tenant) ?? 0
    if (own + bytes > (this.#most - (this.#held - own)) / 2) return false
    this.#add(tenant, bytes)
    return true
  }

  /** Precondition: the tenant took at least that much. */
  give(tenant: string, bytes: number): void {
    this.#add(tenant, -bytes)
  }

  #add(tenant: string, bytes: number): void {
    const own = (this.#tenants.get(tenant) ?? 0) + bytes
    this.#held += bytes
    if (own > 0) this.#tenants.set(tenant, own)
    else this.#tenants.delete(tenant)
  }
}

interface Pools {
  readonly tenant: string
  /** Bound on the bytes of the sandbox beyond the first 64 KiB of each body. */
  readonly most: number
  readonly small: TenantBytes
  readonly large: TenantBytes
}

/** The bodies of one sandbox. Only bytes that arrived count: a length that is only declared keeps nobody out. */
export class ByteBudget {
  readonly #pools: Pools
  #held = 0

  constructor(pools: Pools) {
    this.#pools = pools
  }

  /** A body that begins. */
  open(): HeldBody {
    let [small, large] = [0, 0]
    const { tenant, most, small: firsts, large: rests } = this.#pools
    const take = (bytes: number): void => {
      const first = Math.min(bytes, SMALL_BYTES - small)
      const rest = bytes - first
      if (!firsts.take(tenant, first)) throw tooMany()
      small += first
      if (this.#held + rest > most || !rests.take(tenant, rest)) throw tooMany()
      large += rest
      this.#held += rest
    }
    const release = (): void => {
      firsts.give(tenant, small)
      rests.give(tenant, large)
      this.#held -= large
      small = 0
      large = 0
    }
    return { take, release }
  }
}

export interface HeldBody {
  /** Bytes that arrived. Throws `too_many_requests` when there is no room. */
  readonly take: (bytes: number) => void
  /** Gives all of them back. Has an effect once. */
  readonly release: () => void
}

function tooMany(): AirlockError {
  return new AirlockError('too_many_requests', 'Too many large bodies are under way at once.')
}
