import { describe, expect, it } from 'vitest'
import { CallEnd } from './call-end.ts'

const USAGE = { input: 3, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: 1 }

describe('a call that was sent and failed', () => {
  const sent = () => {
    const end = new CallEnd('cal_1')
    end.sent()
    return end
  }

  it('is charged its ceiling while nothing else is known', () => {
    expect(sent().isChargedCeiling).toBe(true)
    expect(sent().report(503).usage).toBe('unreported')
  })

  it.each([
    ['none', { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }, false],
    [USAGE, { inputTokens: 3, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }, false],
    ['unreadable', 'unreported', true],
  ] as const)('with a whole error of usage %j reports %j', (usage, reported, isCharged) => {
    const end = sent()
    end.failedWhole(usage)
    expect([end.report(503).usage, end.isChargedCeiling]).toEqual([reported, isCharged])
  })
})
