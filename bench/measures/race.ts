import type { Contender, Place } from '../contenders/contender.ts'
import type { Metric, Result } from '../report.ts'
import { summarize } from '../statistics.ts'

/** Samples by metric and contender, in the order in which they came. */
export class Samples {
  readonly #values = new Map<string, { metric: Metric; contender: string; values: number[] }>()

  add(metric: Metric, contender: string, value: number): void {
    const key = `${metric} ${contender}`
    const entry = this.#values.get(key) ?? { metric, contender, values: [] }
    entry.values.push(value)
    this.#values.set(key, entry)
  }

  get results(): readonly Result[] {
    return [...this.#values.values()].map(({ metric, contender, values }) => ({
      metric,
      contender,
      summary: summarize(values),
    }))
  }
}

export interface Race {
  readonly contenders: readonly Contender[]
  readonly rounds: number
  readonly samples: Samples
}

/** A round is one sample of each, so that what disturbs the machine disturbs them all; the first round is not counted. */
export async function raceCold({ contenders, rounds, samples }: Race): Promise<void> {
  for (let round = -1; round < rounds; round++)
    for (const contender of inTurn(contenders, round)) {
      const { resultMs, totalMs } = await contender.cold()
      if (round < 0) continue
      samples.add('coldResult', contender.name, resultMs)
      samples.add('coldTotal', contender.name, totalMs)
    }
}

export async function raceCommands(race: Race): Promise<void> {
  const opened: { name: string; place: Place }[] = []
  try {
    for (const contender of race.contenders) opened.push({ name: contender.name, place: await contender.open() })
    await runInTurn(opened, 3)
    for (const { name, tookMs } of await runInTurn(opened, race.rounds)) race.samples.add('command', name, tookMs)
  } finally {
    for (const { place } of opened) await place.close()
  }
}

async function runInTurn(
  opened: readonly { name: string; place: Place }[],
  rounds: number,
): Promise<readonly { name: string; tookMs: number }[]> {
  const times: { name: string; tookMs: number }[] = []
  for (let round = 0; round < rounds; round++)
    for (const { name, place } of inTurn(opened, round)) {
      const before = performance.now()
      await place.run()
      times.push({ name, tookMs: performance.now() - before })
    }
  return times
}

/** Each begins with another one, so that nobody always runs in the wake of the same. */
export function inTurn<T>(items: readonly T[], round: number): readonly T[] {
  const first = ((round % items.length) + items.length) % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}
