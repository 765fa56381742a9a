import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Tier } from './attack.ts'

/** What came of one attack. */
export interface Outcome {
  readonly id: string
  readonly tier: Tier
  /** What stopped it, in its own words, or what it reached. */
  readonly result: string
  readonly held: boolean
  /** It reached its goal. An attack that says nothing did neither. */
  readonly gotThrough: boolean
}

/** Where the last run left what it saw, one file for each tier, for the page. */
const DIRECTORY = fileURLToPath(new URL('../../../node_modules/.cache/airlock/attacks', import.meta.url))

export function writeOutcomes(tier: Tier, outcomes: readonly Outcome[]): void {
  mkdirSync(DIRECTORY, { recursive: true })
  writeFileSync(join(DIRECTORY, `${tier}.json`), `${JSON.stringify(outcomes, null, 2)}\n`)
}

export function readOutcomes(): readonly Outcome[] {
  return readdirSync(DIRECTORY).flatMap((file) => parseOutcomes(readFileSync(join(DIRECTORY, file), 'utf8')))
}

/** An attack that says nothing was not held: it may not even have run. */
export function outcomeOf(of: Pick<Outcome, 'id' | 'tier'>, output: string): Outcome {
  const lines = output.split('\n')
  const refusal = lines.find((line) => line.startsWith('refused: '))
  const through = lines.find((line) => line.startsWith('REACHED') || line.startsWith('FLAG'))
  const held = refusal !== undefined && through === undefined
  const said = held ? refusal.slice('refused: '.length) : (through ?? `no answer: ${lines.at(-1) ?? ''}`)
  return { ...of, result: said.trim().slice(0, 120), held, gotThrough: through !== undefined }
}

function parseOutcomes(text: string): readonly Outcome[] {
  return JSON.parse(text) as readonly Outcome[]
}
