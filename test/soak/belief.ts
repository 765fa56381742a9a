import type { SandboxData, Session } from '@airlock/sdk'
import type { Tier } from './plan.ts'

/** What a sandbox is, as far as those who use it care. */
export type Standing = 'active' | 'paused' | 'ended'
export type EndReason = NonNullable<SandboxData['endReason']>

const ANY: readonly Standing[] = ['active', 'paused', 'ended']

/** What a lane knows of its sandbox: what it may be now, and by what it may have ended. One word is certainty. */
export class Belief {
  readonly id: string
  readonly tier: Tier
  /** When it was there at the latest, by the clock of the process. */
  readonly since: number
  session: Session | undefined
  /** The limits on memory that it may have; the last one is what was asked for last. */
  memory: readonly number[]
  #possible: ReadonlySet<Standing> = new Set<Standing>(['active'])
  readonly #reasons = new Set<EndReason>()

  constructor(of: { readonly id: string; readonly tier: Tier; readonly since: number; readonly memory: number }) {
    this.id = of.id
    this.tier = of.tier
    this.since = of.since
    this.memory = [of.memory]
  }

  may(standing: Standing): boolean {
    return this.#possible.has(standing)
  }

  is(standing: Standing): boolean {
    return this.#possible.size === 1 && this.may(standing)
  }

  become(standing: Standing): void {
    this.#possible = new Set([standing])
  }

  /** Whatever it was, or this. */
  maybe(...standings: readonly Standing[]): void {
    this.#possible = new Set([...this.#possible, ...standings])
  }

  maybeAnything(): void {
    this.#possible = new Set(ANY)
  }

  mayEndBy(...reasons: readonly EndReason[]): void {
    for (const reason of reasons) this.#reasons.add(reason)
  }

  /** Rules of the server may have ended it by now, for what was done in it. */
  get isAtRisk(): boolean {
    return [...this.#reasons].some((reason) => AT_RISK.has(reason))
  }

  /** What contradicts it, in words. */
  contradiction(data: Pick<SandboxData, 'state' | 'endReason'>): string | undefined {
    const standing = standingOf(data)
    const isKnownEnd = standing === 'ended' && data.endReason !== null && this.#reasons.has(data.endReason)
    const words = `it is ${data.state}${data.endReason === null ? '' : ` (${data.endReason})`}`
    if (standing === undefined) return words
    if (standing === 'ended') return isKnownEnd ? undefined : `${words}, and nothing that was done explains it`
    return this.may(standing) ? undefined : `${words}, and should be ${[...this.#possible].join(' or ')}`
  }
}

const AT_RISK: ReadonlySet<EndReason> = new Set([
  'out_of_memory',
  'pids_exhausted',
  'disk_exhausted',
  'cpu_exhausted',
  'guest_lost',
])

/** Undefined between two of them. */
export function standingOf({ state }: Pick<SandboxData, 'state'>): Standing | undefined {
  if (state === 'active' || state === 'paused') return state
  return state === 'stopped' || state === 'error' ? 'ended' : undefined
}
