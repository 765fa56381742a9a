import { expect, it } from 'vitest'
import { Breaker } from './breaker.ts'

interface Fixture {
  readonly breaker: Breaker
  readonly pass: (ms: number) => void
  readonly fail: (times: number) => void
}

function breakerAt(): Fixture {
  let now = 0
  const breaker = new Breaker(() => now)
  return {
    breaker,
    pass: (ms) => void (now += ms),
    fail(times) {
      for (let n = 0; n < times; n += 1) {
        breaker.enter()
        breaker.failed()
      }
    },
  }
}

it('a breaker opens after five failures in a row, and says for how long', () => {
  const { breaker, pass, fail } = breakerAt()
  fail(4)
  expect(breaker.state).toBe('closed')
  fail(1)
  expect(breaker.state).toBe('open')
  pass(12_500)
  expect(() => breaker.enter()).toThrow(expect.objectContaining({ code: 'upstream_unavailable', retryAfterS: 18 }))
})

it('a call that succeeds between failures keeps it closed', () => {
  const { breaker, fail } = breakerAt()
  fail(4)
  breaker.enter()
  breaker.succeeded()
  fail(4)
  expect(breaker.state).toBe('closed')
})

it('one call is let through after half a minute, and decides', () => {
  const { breaker, pass, fail } = breakerAt()
  fail(5)
  pass(30_000)
  expect(breaker.state).toBe('half-open')
  breaker.enter()
  expect(() => breaker.enter()).toThrow('tried again in 1 s')
  breaker.failed()
  expect(breaker.state).toBe('open')
  pass(30_000)
  breaker.enter()
  breaker.succeeded()
  expect(breaker.state).toBe('closed')
  breaker.enter()
  breaker.enter()
})

it('a call that was given up lets another one try', () => {
  const { breaker, pass, fail } = breakerAt()
  fail(5)
  pass(30_000)
  breaker.enter()
  breaker.abandoned()
  breaker.enter()
  expect(() => breaker.enter()).toThrow()
})
