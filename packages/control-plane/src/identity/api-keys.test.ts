import { describe, expect, it } from 'vitest'
import { mintApiKey, parseApiKey, refuseApiKey } from './api-keys.ts'

const OF = {
  tenant: 'default',
  role: 'developer',
  agents: ['a'],
  platform: false,
  name: 'k',
  purpose: null,
  createdAt: 1,
  createdBy: 'key:x',
  expiresAt: 100,
  replaces: null,
  person: null,
} as const

describe('API keys', () => {
  it('are an id and a secret, of which only a hash is kept', () => {
    const { text, row } = mintApiKey(OF)
    const parsed = parseApiKey(text)
    expect(text).toMatch(/^al_[0-9a-hjkmnp-tv-z]{12}_[0-9a-hjkmnp-tv-z]{32}$/)
    const hash = expect.stringMatching(/^[0-9a-f]{64}$/)
    expect(row).toEqual({ ...OF, id: parsed?.id, hash, revokedAt: null, lastUsedAt: null })
    expect(JSON.stringify(row)).not.toContain(parsed?.secret)
  })

  it('are refused with one wrong letter, anywhere', () => {
    const { text, row } = mintApiKey(OF)
    for (let at = 0; at < text.length; at++) {
      const wrong = `${text.slice(0, at)}${text[at] === 'x' ? 'y' : 'x'}${text.slice(at + 1)}`
      const parsed = parseApiKey(wrong)
      const found = parsed?.id === row.id ? row : undefined
      const isGood = parsed !== undefined && refuseApiKey(parsed, found, 50) === undefined
      expect(isGood).toBe(false)
    }
  })

  it('are good until they expire or are revoked', () => {
    const { text, row } = mintApiKey(OF)
    const key = parseApiKey(text) ?? { id: '', secret: '' }
    expect(refuseApiKey(key, row, 99)).toBeUndefined()
    expect(refuseApiKey(key, row, 100)).toBe('expired')
    expect(refuseApiKey(key, { ...row, revokedAt: 50 }, 60)).toBe('revoked')
    expect(refuseApiKey(key, undefined, 60)).toBe('unknown')
    expect(refuseApiKey({ ...key, secret: '0'.repeat(32) }, row, 60)).toBe('mismatch')
    expect(refuseApiKey(key, { ...row, expiresAt: null }, Number.MAX_SAFE_INTEGER)).toBeUndefined()
  })

  it('that are not of that shape are nothing', () => {
    for (const text of [
      '',
      'al_',
      'al_x_y',
      `al_${'a'.repeat(12)}_${'A'.repeat(32)}`,
      `al_${'l'.repeat(12)}_${'0'.repeat(32)}`,
    ])
      expect(parseApiKey(text)).toBeUndefined()
  })
})
