import { exit } from 'node:process'
import { answersGoProxy } from '../test/support/go.ts'
import { readResults } from '../test/support/results.ts'

/** Reasons to skip that hold on every machine of `.ci/run`, each with why, and whether that is so now. */
const ALLOWED: readonly { readonly reason: RegExp; readonly why: string; readonly isSo?: () => boolean }[] = [
  {
    reason: /^needs go-proxy$/,
    why: 'A registry beyond npm and Debian need not be reachable.',
    isSo: () => !answersGoProxy(),
  },
  { reason: /^needs node20$/, why: 'A machine has one Node of its own, and it may be a later one.' },
]

/** A test that needs a second try is broken. Where tries are allowed at all, one of them is a bad day, more are not. */
const MAX_RETRIED = 1

// For `.ci/run`, after a test run: prints `passed failed skipped`. Fails when something was skipped that its machine can run,
// and when too much passed on the second try only.
const { passed, failed, skipped, retried } = readResults()
const allowed = ALLOWED.filter(
  ({ reason, isSo }) => skipped.some((test) => reason.test(test.reason)) && (isSo?.() ?? true),
)
const wrong = skipped.filter((test) => !allowed.some(({ reason }) => reason.test(test.reason)))
for (const { name, reason } of wrong) console.error(`skipped, although this machine must run it: ${name} (${reason})`)
for (const name of retried) console.error(`passed on the second try: ${name}`)
if (retried.length > MAX_RETRIED) console.error(`${retried.length} second tries are more than ${MAX_RETRIED}`)
console.log(`${passed} ${failed} ${skipped.length}`)
exit(wrong.length === 0 && retried.length <= MAX_RETRIED ? 0 : 1)
