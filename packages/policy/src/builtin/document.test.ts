import { policyDocument } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { compilePolicy } from '../compile.ts'
import { BUILTIN, BUILTIN_VERSION } from './document.ts'

describe('the rules that come with it', () => {
  it('are a document like any other, and all their examples hold', () => {
    expect(policyDocument.parse(structuredClone(BUILTIN))).toEqual(BUILTIN)
    expect(compilePolicy(BUILTIN, { version: BUILTIN_VERSION }).rules).toHaveLength(BUILTIN.rules.length)
  })

  it('each show what they match and what not, where they match by words', () => {
    const without = BUILTIN.rules.filter(
      ({ kind, examples }) => kind !== 'quota' && (examples.match.length === 0 || examples.notMatch.length === 0),
    )
    expect(without.map(({ id }) => id)).toEqual([])
  })
})
