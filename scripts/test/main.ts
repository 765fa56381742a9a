import { argv, env, exit } from 'node:process'
import { chooseSeed } from '../../test/support/seed.ts'
import type { FileResult } from '../../test/support/results.ts'
import { installMissing } from '../system-packages.ts'
import { mustRun } from './skips.ts'
import { choose } from './suites.ts'
import { judge, worthASecondLook } from './verdict.ts'
import { type Run, runVitest } from './vitest.ts'

const SLOWEST = 10

// Runs a suite of tests and looks a second time at the files that failed: `main.ts <suite> [part…] [argument of Vitest…]`.
const { projects, packages, args } = choose(argv.slice(2))
if (!installMissing(packages)) exit(1)
const seed = chooseSeed(env['TEST_SEED'])
// Vitest hears Ctrl-C itself and ends in order.
let isInterrupted = false
process.on('SIGINT', () => (isInterrupted = true))

const first = await runVitest(projects, args, seed)
const again = new Map<FileResult, Run>()
const failed = isInterrupted || args.length > 0 ? [] : worthASecondLook(first)
if (failed.length > 0) console.log(`\n== second look: ${failed.length} failed files, one after the other`)
for (const [project, files = []] of Object.entries(Object.groupBy(failed, (file) => file.project))) {
  if (isInterrupted) break
  const run = await runVitest([project], [...files.map(({ file }) => file), '--no-file-parallelism'], seed)
  for (const file of files) again.set(file, run)
}

// On a machine that `.ci/run` has prepared, tests may be skipped for few reasons.
const {
  holds,
  lines,
  passed,
  failed: count,
  skipped,
} = judge(first, again, env['CI'] === 'true' ? mustRun : () => false)
const slowest = (first.results?.files ?? []).toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)
console.log('\nslowest files:')
for (const { seconds, project, file } of slowest)
  console.log(`${seconds.toFixed(1).padStart(8)} s  ${project}  ${file}`)
for (const line of lines) console.log(line)
console.log(`${passed} passed, ${count} failed, ${skipped} skipped`)
exit(isInterrupted ? 130 : holds ? 0 : 1)
