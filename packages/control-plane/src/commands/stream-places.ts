import { AirlockError } from '@airlock/contract'

/** How many streams may be open at once: of one tenant, so that others have room, and of all. */
export class StreamPlaces {
  readonly #bounds: { readonly tenant: number; readonly all: number }
  readonly #open = new Map<string, number>()

  constructor(bounds: { readonly tenant: number; readonly all: number }) {
    this.#bounds = bounds
  }

  /** A place for one more stream; answers how to give it back, once. */
  take(tenant: string): () => void {
    const count = this.#open.get(tenant) ?? 0
    const all = this.#open.values().reduce((sum, one) => sum + one, 0)
    if (count >= this.#bounds.tenant || all >= this.#bounds.all) throw new AirlockError('too_many_streams')
    this.#open.set(tenant, count + 1)
    return () => {
      const left = (this.#open.get(tenant) ?? 1) - 1
      if (left > 0) this.#open.set(tenant, left)
      else this.#open.delete(tenant)
    }
  }
}
