import type { Failure, FileResult } from '../../test/support/results.ts'
import type { Run } from './vitest.ts'

/** More unstable files than this fail the run: a machine that is this busy proves nothing. */
const MAX_UNSTABLE = 5
/** With more failed files than this there is no second look: something that they share is broken. */
const MAX_SECOND_LOOKS = 12

export interface Verdict {
  readonly holds: boolean
  readonly lines: readonly string[]
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Files that deserve a second look. None after a failure that a second look cannot excuse. */
export function worthASecondLook({ results }: Run): readonly FileResult[] {
  const failed = results?.files.filter(({ failures }) => failures.length > 0) ?? []
  return failed.length > MAX_SECOND_LOOKS ? [] : failed
}

/** `again`: for each file of `worthASecondLook` the run that included it once more. `mustRun`: whether this skip is a failure. */
export function judge(first: Run, again: ReadonlyMap<FileResult, Run>, mustRun: (reason: string) => boolean): Verdict {
  const files = first.results?.files ?? []
  const failed = files.filter(({ failures }) => failures.length > 0)
  const unstable = failed.filter((file) => again.has(file) && isUnstable(file, again.get(file)))
  const broken = [
    ...failed.filter((file) => !unstable.includes(file)).flatMap((file) => brokenLines(file, again.get(file))),
    ...homeless(first),
    ...[...new Set(again.values())].flatMap(homeless).map((line) => `${line} (second look)`),
    ...(unstable.length > MAX_UNSTABLE ? [`broken: ${unstable.length} unstable files, more than ${MAX_UNSTABLE}`] : []),
  ]
  const skipped = files.flatMap((file) => file.skipped)
  const wrong = skipped.filter(({ reason }) => mustRun(reason))
  return {
    holds: broken.length === 0 && wrong.length === 0,
    lines: [
      ...unstable.flatMap(({ file, failures }) => failures.map((failure) => line('unstable', file, failure))),
      ...broken,
      ...wrong.map(({ name, reason }) => `broken: skipped, although this machine must run it: ${name} (${reason})`),
    ],
    passed: files.reduce((sum, file) => sum + file.passed + (unstable.includes(file) ? file.failures.length : 0), 0),
    failed: broken.length + wrong.length,
    skipped: skipped.length - wrong.length,
  }
}

/** Passed when it ran again, alone and whole. */
function isUnstable({ file, failures }: FileResult, run: Run | undefined): boolean {
  if (failures.some(({ isBreach }) => isBreach)) return false
  const second = run?.results?.files.find((result) => result.file === file)
  return second !== undefined && second.failures.length === 0 && second.passed > 0
}

function brokenLines({ file, failures }: FileResult, run: Run | undefined): readonly string[] {
  const second = run?.results?.files.find((result) => result.file === file)?.failures ?? []
  const all = [...failures, ...second.filter(({ test }) => !failures.some((failure) => failure.test === test))]
  return all.map((failure) => line('broken', file, failure))
}

/** What failed without a file: its global set-up, something left behind, an error outside of tests. */
function homeless({ exitCode, results }: Run): readonly string[] {
  if (!results) return [`broken: Vitest ended with ${exitCode ?? 'a signal'} and without results`]
  if (results.unhandled.length > 0) return results.unhandled.map((error) => `broken: outside of tests: ${error}`)
  const failed = results.files.some(({ failures }) => failures.length > 0)
  if (results.files.length === 0) return ['broken: no test file ran']
  return exitCode === 0 || failed ? [] : [`broken: every test passed, but Vitest ended with ${exitCode ?? 'a signal'}`]
}

function line(what: 'unstable' | 'broken', file: string, { test, error, isBreach }: Failure): string {
  const where = [file, test].filter((word) => word !== '').join(' > ')
  return `${what}: ${where}: ${isBreach ? 'an attack got through: ' : ''}${error}`
}
