import { FAILPOINTS, type FailpointName, PROCESSES, type ProcessName } from '@airlock/contract'
import { describe, it } from 'vitest'
import { crash } from './crash.ts'

/** Where the doors of a sandbox are not opened yet, are being opened, are open, are being shut, and are shut. */
const WITH_DOORS: readonly FailpointName[] = [
  'create.recorded',
  'create.started',
  'create.activated',
  'terminate.marked',
  'terminate.destroyed',
]

// Each case has a server of its own, which mostly waits: several at once are no harder and take half the time.
describe.each(PROCESSES)('kill -9 of the %s', { concurrent: true }, (victim) => {
  it.each(failpointsFor(victim))('at %s leaves nothing behind and nothing in limbo', async (failpoint) => {
    await crash(failpoint, victim)
  })
})

/** The doors take part in two moments of a sandbox, and in nothing else. Approvals have a test of their own, in test/security. */
function failpointsFor(victim: ProcessName): readonly FailpointName[] {
  return victim === 'doors' ? WITH_DOORS : FAILPOINTS.filter((name) => name !== 'approval.used')
}
