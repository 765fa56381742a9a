import { describe, expect, it } from 'vitest'
import { exhausted } from '../spend/exhausted.ts'
import { type PricedCall, sandboxExhausted, tooDear } from './exhausted-calls.ts'

/** $10 for a million tokens of output, and $0.0025 of input. */
const CALL: PricedCall = {
  route: 'chat',
  maxOutputTokens: 128_000,
  ceilingMicroDollars: 1_282_500,
  ceilingTokens: 130_000,
  outputPrice: 10_000_000,
}
const AGENT = { tenant: 'acme', agent: 'a' }

describe('a call over the cap of its sandbox', () => {
  it('names first the bound on output that fits, then a cap that would do', () => {
    const { hint } = sandboxExhausted('dollars', { used: 0, more: 1_282_500, limit: 500_000 }, CALL)
    expect(hint).toMatch(/^In the program, set max_tokens \(or max_completion_tokens; .*\) to 49749 or less/)
    expect(hint).toContain('--model-dollars 1.29')
  })

  it.each([
    ['responses', 'set max_output_tokens to'],
    ['messages', 'set max_tokens to'],
    ['embeddings', 'Make another sandbox with a larger cap'],
  ] as const)('of %s names the field of that protocol', (route, text) => {
    const call = { ...CALL, route }
    expect(sandboxExhausted('dollars', { used: 0, more: 1_282_500, limit: 500_000 }, call).hint).toContain(text)
  })

  it('of tokens names the number that is left after its input', () => {
    const { hint } = sandboxExhausted('tokens', { used: 500, more: 130_000, limit: 10_000 }, CALL)
    expect(hint).toContain('to 7500 or less')
    expect(hint).toContain('--model-tokens 130500')
  })

  it('names another sandbox alone where no output would fit', () => {
    const { hint } = sandboxExhausted('dollars', { used: 499_999, more: 1_282_500, limit: 500_000 }, CALL)
    expect(hint).toBe('Make another sandbox with a larger cap: airlock run or create with --model-dollars 1.79')
    expect(sandboxExhausted('calls', { used: 7, more: 1, limit: 7 }, CALL).hint).toContain('--model-calls 8')
  })
})

describe('the limit that a refusal of a budget names', () => {
  it('is above all that is spent, held and asked for', () => {
    expect(tooDear(AGENT, { spent: 56_000_000, held: 1_000_000, limit: 0 }, CALL).hint).toContain('--dollars 59')
    expect(exhausted(AGENT, 'modelCallsPerDay', { used: 56, more: 1, limit: 0 }).hint).toContain('--model-calls 57')
    expect(exhausted(AGENT, 'modelTokensPerDay', { used: 56, more: 9, limit: 0 }).hint).toContain('--model-tokens 130')
    expect(exhausted(AGENT, 'dollarsPerDay', { used: 56.5, more: 0, limit: 1 }).hint).toContain('--dollars 113')
    expect(exhausted(AGENT, 'computeSecondsPerDay', { used: 56, more: 0, limit: 0 }).hint).toContain(
      '--compute-seconds 112',
    )
  })
})
