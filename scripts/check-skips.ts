import { exit } from 'node:process'
import { readResults } from '../test/support/results.ts'

/** Reasons to skip that hold on every machine of `.ci/run`, each with why. */
const ALLOWED: readonly { readonly reason: RegExp; readonly why: string }[] = [
  { reason: /^needs node20$/, why: 'A machine has one Node of its own, and it may be a later one.' },
]

// For `.ci/run`, after a test run: prints `passed failed skipped`, and fails when something was skipped that its machine can run.
const { passed, failed, skipped } = readResults()
const wrong = skipped.filter((test) => !ALLOWED.some(({ reason }) => reason.test(test.reason)))
for (const { name, reason } of wrong) console.error(`skipped, although this machine must run it: ${name} (${reason})`)
console.log(`${passed} ${failed} ${skipped.length}`)
exit(wrong.length === 0 ? 0 : 1)
