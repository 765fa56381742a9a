import { afterAll, beforeAll, describe, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { CALL_CRASHES, callCrashName, CallCrashes } from './call-crashes.ts'

/** Before the record of a call is durable, and between its fact and its last record. `call-crashes.long.test.ts` has the others. */
const CASES = CALL_CRASHES.filter((one) =>
  ['model.row-written of the control-plane', 'model.closed of the control-plane'].includes(callCrashName(one)),
)

describe('kill -9 during calls of models', requires('root'), () => {
  let crashes: CallCrashes
  beforeAll(async () => (crashes = await CallCrashes.start()), 240_000)
  afterAll(async () => crashes?.stop())

  it.each(CASES.map((one) => [callCrashName(one), one] as const))(
    'at %s leaves each call with one end and one fact, and its budget free',
    { timeout: 240_000 },
    async (_, one) => crashes.run(one),
  )
})
