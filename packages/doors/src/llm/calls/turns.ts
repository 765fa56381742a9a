/** The sandbox that waits for a turn, and its tenant. */
export interface Holder {
  readonly tenant: string
  readonly sandbox: string
}

type Begin = () => void

/**
 * A number of places, with fair turns: a tenant holds one place at most, tenants take turns, and so do the sandboxes of a tenant.
 * The caller bounds what waits.
 */
export class Turns {
  #free: number
  readonly #holding = new Set<string>()
  /** In the order of their next turn, as maps are. */
  readonly #waiting = new Map<string, Map<string, Begin[]>>()

  constructor(places: number) {
    this.#free = places
  }

  async during<T>(holder: Holder, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((begin) => {
      this.#enqueue(holder, begin)
      this.#next()
    })
    try {
      return await work()
    } finally {
      this.#holding.delete(holder.tenant)
      this.#free += 1
      this.#next()
    }
  }

  #enqueue({ tenant, sandbox }: Holder, begin: Begin): void {
    const sandboxes = this.#waiting.get(tenant) ?? new Map<string, Begin[]>()
    this.#waiting.set(tenant, sandboxes)
    const begins = sandboxes.get(sandbox) ?? []
    sandboxes.set(sandbox, begins)
    begins.push(begin)
  }

  #next(): void {
    for (const [tenant, sandboxes] of this.#waiting) {
      if (this.#free === 0) return
      if (this.#holding.has(tenant)) continue
      this.#free -= 1
      this.#holding.add(tenant)
      this.#waiting.delete(tenant)
      const begin = takeTurn(sandboxes)
      if (sandboxes.size > 0) this.#waiting.set(tenant, sandboxes)
      begin?.()
    }
  }
}

/** The first of the sandbox whose turn it is. The sandbox goes to the end. */
function takeTurn(sandboxes: Map<string, Begin[]>): Begin | undefined {
  const [first] = sandboxes
  if (!first) return undefined
  const [sandbox, begins] = first
  const begin = begins.shift()
  sandboxes.delete(sandbox)
  if (begins.length > 0) sandboxes.set(sandbox, begins)
  return begin
}
