import { isAirlockError } from '@airlock/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonical } from './canonical.ts'

describe('canonical', () => {
  it('sorts keys by code units, at every depth, and writes no white space', () => {
    const value = { b: [{ z: 1, a: null }], a: 'x', '€': 1.5, '\r': true, '1': -0, B: 1e21 }
    expect(canonical(value)).toBe('{"\\r":true,"1":0,"B":1e+21,"a":"x","b":[{"a":null,"z":1}],"€":1.5}')
  })

  it('leaves out undefined fields', () => {
    expect(canonical({ a: undefined, b: 1 })).toBe('{"b":1}')
  })

  it('is the same for every order of the keys and says what JSON says', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const text = canonical(value)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(canonical(reversed(JSON.parse(text)))).toBe(text)
      }),
    )
  })

  it('refuses what has no JSON text and what is nested too deep', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    for (const value of [Number.NaN, Infinity, undefined, () => 1, deep])
      expect(refusal(() => canonical(value))).toBe('invalid_request')
  })
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reversed(item)]),
  )
}

function refusal(work: () => unknown): string | undefined {
  try {
    work()
  } catch (error) {
    return isAirlockError(error) ? error.code : undefined
  }
  return undefined
}
