import { expect, it } from 'vitest'
import { OpenCalls } from './open-calls.ts'

it('a call ends when its model is taken away, and says why', () => {
  const calls = new OpenCalls()
  const [small, large] = [
    calls.begin({ id: 'cal_1', model: 'small' }, new AbortController().signal),
    calls.begin({ id: 'cal_2', model: 'large' }, new AbortController().signal),
  ]
  calls.keepOnly(new Set(['small']))
  expect(small.signal.aborted).toBe(false)
  expect(large.signal.reason).toMatchObject({ code: 'policy_denied' })
})

it('a call ends when it is named, and others go on', () => {
  const calls = new OpenCalls()
  const [one, other] = ['cal_1', 'cal_2'].map((id) => calls.begin({ id, model: 'small' }, new AbortController().signal))
  calls.cut(['cal_2', 'con_3'])
  expect(one?.signal.aborted).toBe(false)
  expect(other?.signal.reason).toMatchObject({ code: 'policy_denied' })
})

it('so many calls wait for a decision at once, and the others follow', async () => {
  const calls = new OpenCalls()
  let most = 0
  let now = 0
  const open = async () => {
    most = Math.max(most, ++now)
    await new Promise((resolve) => setImmediate(resolve))
    now -= 1
  }
  await Promise.all(Array.from({ length: 50 }, async () => calls.opening(open)))
  expect(most).toBe(16)
})
