import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { entries } from './host-state.ts'
import { look } from './leftovers.ts'
import type { Results } from './results.ts'
import { createRun, endBrokenOffRuns, endRun, memoryOf, sleep } from './runs.ts'

const SETTLE_MS = 3_000

// Global set-up of every run: ends what earlier runs left, and gives this one a directory of its own for temporary files.
export function setup(): void {
  for (const line of endBrokenOffRuns()) console.log(`ended what an earlier run of tests left: ${line}`)
  const owners = (process.env['TEST_OWNERS'] ?? '').split(' ').filter((pid) => pid !== '')
  const directory = createRun(owners.map(Number))
  process.env['TMPDIR'] = directory
  process.env['TEST_MEMORY'] = memoryOf(directory)
  process.env['TEST_RUN'] = basename(directory)
  // After all tear-downs. Only synchronous work is possible here.
  process.once('exit', () => {
    let left = lookInto(directory)
    // The kernel lets go of some things a moment later.
    for (const until = Date.now() + SETTLE_MS; left.length > 0 && Date.now() < until; left = lookInto(directory))
      sleep(100)
    endRun(directory)
    if (left.length > 0) fail(left)
  })
}

function lookInto(directory: string): readonly string[] {
  return entries(directory).flatMap((name) => look(join(directory, name)))
}

function fail(left: readonly string[]): void {
  const errors = left.map((thing) => `left behind: ${thing}`)
  for (const error of errors) console.error(error)
  process.exitCode = 1
  const path = process.env['TEST_RESULTS']
  if (path === undefined) return
  const results = JSON.parse(readFileSync(path, 'utf8')) as Results
  writeFileSync(path, JSON.stringify({ ...results, unhandled: [...results.unhandled, ...errors] }))
}
