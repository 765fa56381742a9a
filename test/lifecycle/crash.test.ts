import type { FailpointName, ProcessName } from '@airlock/contract'
import { describe, it } from 'vitest'
import { crash } from './crash.ts'

/** One of each kind; `crash.long.test.ts` has the whole table. */
const CASES: readonly [FailpointName, ProcessName][] = [
  ['create.row-written', 'control-plane'],
  ['create.launched', 'data-plane'],
  ['create.guest-attached', 'supervisor'],
  ['command.running', 'data-plane'],
  ['command.exited', 'control-plane'],
  ['step.row-written', 'control-plane'],
  ['step.accepted', 'data-plane'],
  ['pause.frozen', 'data-plane'],
  ['resume.thawed', 'control-plane'],
  ['limit.state-written', 'data-plane'],
  ['limit.applied', 'control-plane'],
  ['kill.row-written', 'control-plane'],
  ['kill.frozen', 'data-plane'],
  ['terminate.frozen', 'data-plane'],
  ['terminate.destroyed', 'recorder'],
  ['record.written', 'recorder'],
  ['record.synced', 'recorder'],
]

describe('kill -9', () => {
  it.each(CASES)('at %s of the %s leaves nothing behind and nothing in limbo', async (failpoint, victim) => {
    await crash(failpoint, victim)
  })
})
