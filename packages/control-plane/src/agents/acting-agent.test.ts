import { describe, expect, it } from 'vitest'
import { actingAgent } from './acting-agent.ts'

describe('the agent that a caller acts for', () => {
  it.each([
    ['the default agent, of a caller that is bound to none', null, undefined, 'default'],
    ['the one that it is bound to', ['coder'], undefined, 'coder'],
    ['the one that it names', ['coder', 'writer'], 'writer', 'writer'],
    ['the one that it names, bound or not: whether it may is not said here', ['coder'], 'writer', 'writer'],
  ])('is %s', (_which, agents, named, agent) => {
    expect(actingAgent({ agents }, named)).toBe(agent)
  })

  it('is not guessed among several: they are listed', () => {
    expect(() => actingAgent({ agents: ['coder', 'writer'] }, undefined)).toThrow(
      expect.objectContaining({ code: 'agent_required', message: expect.stringContaining('coder, writer') }),
    )
  })
})
