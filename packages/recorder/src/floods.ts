import { AirlockError } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import type { Entry } from './chain/chain.ts'

const WINDOW_MS = 30 * 60 * 1000
/** So many writers are told apart in a window; the others count for their tenant alone. */
const MAX_WRITERS = 10_000
/** As long as there is less that is new, whoever is refused already was the one. */
const GROWTH_BYTES = 1024 * 1024
/** The chain of what belongs to no tenant: nobody's grants are recorded there. */
const SYSTEM = 'system'

type Usage = Map<string, Map<string, number>>

/**
 * Who wrote how much of the evidence lately, in the last half hour to hour. When there is no room for more and nothing is
 * old enough to be dropped, it is the key that wrote the most that is refused; the whole tenant only when no single key
 * wrote half of what its tenant did. What reduces is not refused, but for refusals of that very key: they are the flood.
 */
export class Floods {
  readonly #clock: Clock
  #recent: Usage = new Map()
  #before: Usage = new Map()
  #writers = 0
  #turnAt: number
  readonly #refused = new Set<string>()
  #totalThen = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#turnAt = clock.now() + WINDOW_MS
  }

  /** Throws when the record must not be written. */
  assertRoom({ record, patient = false }: Entry): void {
    const { tenant, actor, status } = record
    if (this.#refused.size === 0) return
    const isOfKey = this.#refused.has(nameOf(tenant, actor))
    if (isOfKey && (!patient || status === 'denied'))
      throw new AirlockError('evidence_full', `There is no room for more evidence of ${actor}.`)
    if (this.#refused.has(tenant) && !patient)
      throw new AirlockError('evidence_full', `There is no room for more evidence of ${tenant}.`)
  }

  add({ record: { tenant, actor } }: Entry, bytes: number): void {
    this.#turn()
    const writers = this.#recent.get(tenant) ?? new Map<string, number>()
    this.#recent.set(tenant, writers)
    const isKnown = writers.has(actor)
    if (!isKnown && this.#writers >= MAX_WRITERS) return void writers.set('', (writers.get('') ?? 0) + bytes)
    if (!isKnown) this.#writers += 1
    writers.set(actor, (writers.get(actor) ?? 0) + bytes)
  }

  /** There is room again. */
  clear(): void {
    this.#refused.clear()
    this.#totalThen = 0
  }

  /** There is none: refuses one more, if all those that are refused did not help. Says whom. */
  blame(total: number): string | undefined {
    if (this.#totalThen > 0 && total < this.#totalThen + GROWTH_BYTES) return undefined
    this.#totalThen = total
    const [worst] = this.#usage().sort((a, b) => b.bytes - a.bytes)
    if (!worst) return undefined
    const [key] = [...worst.writers].filter(([actor]) => actor !== SYSTEM && actor !== '').sort((a, b) => b[1] - a[1])
    const name = key && key[1] * 2 >= worst.bytes ? nameOf(worst.tenant, key[0]) : worst.tenant
    this.#refused.add(name)
    return name
  }

  /** Of tenants that are not refused, what those of their writers wrote who are not either. */
  #usage(): { tenant: string; bytes: number; writers: Map<string, number> }[] {
    this.#turn()
    const tenants = new Set([...this.#before.keys(), ...this.#recent.keys()])
    return [...tenants]
      .filter((tenant) => tenant !== SYSTEM && !this.#refused.has(tenant))
      .map((tenant) => {
        const writers = new Map<string, number>()
        for (const window of [this.#before, this.#recent])
          for (const [actor, bytes] of window.get(tenant) ?? [])
            if (!this.#refused.has(nameOf(tenant, actor))) writers.set(actor, (writers.get(actor) ?? 0) + bytes)
        return { tenant, writers, bytes: [...writers.values()].reduce((sum, bytes) => sum + bytes, 0) }
      })
      .filter(({ bytes }) => bytes > 0)
  }

  #turn(): void {
    if (Math.abs(this.#turnAt - this.#clock.now()) <= WINDOW_MS && this.#clock.now() < this.#turnAt) return
    this.#turnAt = this.#clock.now() + WINDOW_MS
    this.#before = this.#recent
    this.#recent = new Map()
    this.#writers = 0
  }
}

/** No tenant has a space in its name. */
function nameOf(tenant: string, actor: string): string {
  return `${tenant} ${actor}`
}
