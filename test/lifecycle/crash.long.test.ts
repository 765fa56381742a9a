import { FAILPOINTS, PROCESSES } from '@airlock/contract'
import { describe, it } from 'vitest'
import { crash } from './crash.ts'

describe.each(PROCESSES)('kill -9 of the %s', (victim) => {
  it.each(FAILPOINTS)('at %s leaves nothing behind and nothing in limbo', async (failpoint) => {
    await crash(failpoint, victim)
  })
})
