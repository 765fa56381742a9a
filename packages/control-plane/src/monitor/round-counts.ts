import type { Alert } from '@airlock/contract'

const BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

/** What rounds of the monitor took, and which alerts came of them, since the start of the process. */
export class RoundCounts {
  /** By upper bound in seconds, each with all that are below. */
  readonly #buckets = new Map<number, number>(BUCKETS_S.map((bound) => [bound, 0]))
  /** By resource and level: few of both. */
  readonly #alerts = new Map<string, RaisedAlerts>()
  #done = 0
  #failed = 0
  #seconds = 0

  done(tookMs: number): void {
    const seconds = tookMs / 1000
    this.#done += 1
    this.#seconds += seconds
    for (const [bound, count] of this.#buckets) if (seconds <= bound) this.#buckets.set(bound, count + 1)
  }

  failed(): void {
    this.#failed += 1
  }

  raised({ resource, level }: Alert): void {
    const count = this.#alerts.get(`${resource}/${level}`)?.count ?? 0
    this.#alerts.set(`${resource}/${level}`, { resource, level, count: count + 1 })
  }

  get rounds(): Rounds {
    return { done: this.#done, failed: this.#failed, seconds: this.#seconds, buckets: [...this.#buckets] }
  }

  get alerts(): readonly RaisedAlerts[] {
    return [...this.#alerts.values()]
  }
}

export interface Rounds {
  readonly done: number
  readonly failed: number
  /** What those that were done took, together. */
  readonly seconds: number
  readonly buckets: readonly (readonly [bound: number, count: number])[]
}

export interface RaisedAlerts {
  readonly resource: string
  readonly level: string
  readonly count: number
}
