import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Skipped {
  readonly name: string
  readonly reason: string
}

export interface Results {
  readonly passed: number
  readonly failed: number
  readonly skipped: readonly Skipped[]
  /** Tests that passed on the second try only. */
  readonly retried: readonly string[]
}

/** Where the last run left its results, for `.ci/run`. */
export const RESULTS_FILE = fileURLToPath(new URL('../../node_modules/.cache/airlock/results.json', import.meta.url))

export function readResults(): Results {
  return parseResults(readFileSync(RESULTS_FILE, 'utf8'))
}

function parseResults(text: string): Results {
  return JSON.parse(text) as Results
}
