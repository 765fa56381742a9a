import { createPublicKey } from 'node:crypto'
import { expect, it } from 'vitest'
import { newSealKey, openSecret, parseSealKey, rawPublicKey, sealSecret } from './sealed-secret.ts'

const VALUE = 'ghp_canary-0123456789abcdef'
const PURPOSE = { tenant: 'default', name: 'github', origin: 'https://api.github.com' }
const privateKey = parseSealKey(newSealKey())
const recipient = rawPublicKey(createPublicKey(privateKey))
const sealed = sealSecret(VALUE, PURPOSE, recipient)

it('a sealed secret opens with the private key, for its own purpose', () => {
  expect(openSecret(sealed, PURPOSE, privateKey)).toBe(VALUE)
})

it('the same value is never sealed to the same text, and no text holds it', () => {
  const again = sealSecret(VALUE, PURPOSE, recipient)
  expect(again).not.toBe(sealed)
  for (const form of [VALUE, Buffer.from(VALUE).toString('base64url')]) expect(again + sealed).not.toContain(form)
})

it.each([
  ['tenant', { ...PURPOSE, tenant: 'other' }],
  ['name', { ...PURPOSE, name: 'other' }],
  ['origin', { ...PURPOSE, origin: 'https://evil.example' }],
])('a sealed secret does not open for another %s', (_, purpose) => {
  expect(openSecret(sealed, purpose, privateKey)).toBeUndefined()
})

it('a sealed secret does not open with another key', () => {
  expect(openSecret(sealed, PURPOSE, parseSealKey(newSealKey()))).toBeUndefined()
})

it('no text with a character exchanged opens', () => {
  for (let at = 4; at < sealed.length; at += 7) {
    const altered = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`
    expect(openSecret(altered, PURPOSE, privateKey)).toBeUndefined()
  }
})

it('text that is not a sealed secret does not open', () => {
  for (const text of ['', 'als_', VALUE, `${sealed}\n`, sealed.slice(0, -30)])
    expect(openSecret(text, PURPOSE, privateKey)).toBeUndefined()
})
