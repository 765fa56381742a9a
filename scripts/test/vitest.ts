import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readResults, type Results } from '../../test/support/results.ts'

const PROGRAM = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/airlock', import.meta.url))
const REPORTER = fileURLToPath(new URL('../../test/support/reporter.ts', import.meta.url))

export interface Run {
  readonly exitCode: number | null
  /** Undefined if Vitest ended before it had any. */
  readonly results: Results | undefined
}

/** Runs Vitest in the working directory, on this terminal, with the seed of all runs. */
export async function runVitest(projects: readonly string[], args: readonly string[], seed: string): Promise<Run> {
  const path = join(CACHE, `results-${process.pid}.json`)
  mkdirSync(CACHE, { recursive: true })
  rmSync(path, { force: true })
  try {
    const words = [...projects.flatMap((name) => ['--project', name]), '--reporter', REPORTER, ...args]
    const owners = `${process.env['TEST_OWNERS'] ?? ''} ${process.pid}`.trim()
    const env = { ...process.env, TEST_RESULTS: path, TEST_SEED: seed, TEST_OWNERS: owners }
    const child = spawn(process.execPath, [PROGRAM, 'run', ...words], { stdio: 'inherit', env })
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', resolve)
    })
    return { exitCode, results: readResults(path) }
  } finally {
    rmSync(path, { force: true })
  }
}
