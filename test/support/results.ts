import { readFileSync } from 'node:fs'

export interface Skipped {
  readonly name: string
  readonly reason: string
}

export interface Failure {
  /** Names of its suites and its own; empty for a failure of the file outside of tests. */
  readonly test: string
  /** First line of the first error. */
  readonly error: string
  /** An attack succeeded: no second look can excuse this. */
  readonly isBreach: boolean
}

export interface FileResult {
  readonly project: string
  /** Relative to the root of the repository. */
  readonly file: string
  readonly seconds: number
  readonly passed: number
  readonly skipped: readonly Skipped[]
  readonly failures: readonly Failure[]
}

/** What one run of Vitest found. The reporter writes it to the file named by `TEST_RESULTS`. */
export interface Results {
  readonly files: readonly FileResult[]
  /** First lines of errors that belong to no file. */
  readonly unhandled: readonly string[]
}

/** Undefined if the run ended before its reporter did. */
export function readResults(path: string): Results | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Results
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
