import { AirlockError, BOUNDS } from '@airlock/contract'

/** Downloads by links, which no key is counted for: so many at once of a tenant, and of all. */
export class LinkedDownloads {
  readonly #open = new Map<string, number>()
  #all = 0

  async open(tenant: string, ask: () => Promise<AsyncIterable<Buffer>>): Promise<AsyncIterable<Buffer>> {
    this.#assertRoom(tenant)
    return this.#counted(tenant, await ask())
  }

  /** Counted from the first byte on: a reader that never comes takes no place. */
  async *#counted(tenant: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    this.#assertRoom(tenant)
    this.#count(tenant, 1)
    try {
      yield* bytes
    } finally {
      this.#count(tenant, -1)
    }
  }

  #assertRoom(tenant: string): void {
    const { tenant: ofTenant, all } = BOUNDS.linkedDownloads
    if (this.#all >= all || (this.#open.get(tenant) ?? 0) >= ofTenant) throw new AirlockError('too_many_streams')
  }

  #count(tenant: string, by: 1 | -1): void {
    this.#all += by
    const now = (this.#open.get(tenant) ?? 0) + by
    if (now > 0) this.#open.set(tenant, now)
    else this.#open.delete(tenant)
  }
}
