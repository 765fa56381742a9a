import { expect, it } from 'vitest'
import { deadline, sleep, waitFor } from './wait.ts'

it('stops sleeping with the reason of the signal', async () => {
  const reason = new TypeError('enough')
  await expect(sleep(60_000, AbortSignal.abort(reason))).rejects.toBe(reason)
})

it('asks again until there is an answer, and no longer than it may', async () => {
  let asked = 0
  const answer = await waitFor(() => (++asked === 3 ? 'yes' : undefined), { signal: deadline(100_000), everyMs: 1 })
  expect({ answer, asked }).toEqual({ answer: 'yes', asked: 3 })
  await expect(waitFor(() => undefined, { signal: deadline(10), everyMs: 1 })).rejects.toThrow()
})

it('aborts with whichever comes first', async () => {
  const outer = new AbortController()
  const signal = deadline(60_000, outer.signal)
  outer.abort(new TypeError('outer'))
  expect(signal.reason).toEqual(new TypeError('outer'))
})
