import { describe, expect, it } from 'vitest'
import { ROUTES } from '../routes/routes.ts'

const { query } = ROUTES.events

describe('the points of a query', () => {
  it.each([
    ['command.run', ['command.run']],
    ['sandbox.terminate,command.run', ['command.run', 'sandbox.terminate']],
    ['key.*', ['key.create', 'key.revoke', 'key.rotate']],
    ['*.heartbeat', ['agent.heartbeat']],
    ['agent.re*e', ['agent.resume', 'agent.revoke']],
  ])('%s', (point, expected) => {
    expect([...(query.parse({ point }).point ?? [])].sort()).toEqual(expected)
  })

  it.each(['', 'nothing', 'command.*,', '***', 'a*b*c*', '(a+)+', 'command.run,x'.repeat(90)])(
    'refuses %j',
    (point) => {
      expect(query.safeParse({ point }).success).toBe(false)
    },
  )
})
