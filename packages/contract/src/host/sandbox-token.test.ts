import { generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { signPermit } from './permit.ts'
import { type SandboxToken, signSandboxToken, verifySandboxToken } from './sandbox-token.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')

const TOKEN: SandboxToken = {
  tokenId: 'tok_1',
  tenant: 'default',
  agent: 'alice',
  sandbox: 'sbx_0000000000aaaaaaaaaaaaaaaa',
  generation: 3,
  scopes: ['self', 'renew'],
  issuedAt: 1000,
  expiresAt: 2000,
}

const signed = signSandboxToken(TOKEN, privateKey)

describe('a sandbox token', () => {
  it('says what was signed, as long as it is good', () => {
    expect(verifySandboxToken(signed, publicKey, 1999)).toEqual(TOKEN)
  })

  it('is over when its time is', () => {
    expect(verifySandboxToken(signed, publicKey, 2000)).toBe('expired')
  })

  it('is forged when another key signed it', () => {
    const { privateKey: other } = generateKeyPairSync('ed25519')
    expect(verifySandboxToken(signSandboxToken(TOKEN, other), publicKey, 1500)).toBe('forged')
  })

  it('is forged when a single bit of what it says is another', () => {
    const [payload = '', signature] = signed.slice('alt_'.length).split('.')
    const bytes = Buffer.from(payload, 'base64url')
    for (let at = 0; at < bytes.length; at += 7) {
      const altered = Buffer.from(bytes)
      altered[at] = (altered[at] ?? 0) ^ 1
      const text = `alt_${altered.toString('base64url')}.${signature}`
      expect(verifySandboxToken(text, publicKey, 1500)).toBe('forged')
    }
  })

  it('is not a permit, and a permit is none, although one key signed both', () => {
    // oxlint-disable-next-line typescript/no-unsafe-argument -- the payload of another is what is tried
    const permit = signPermit(JSON.parse(JSON.stringify(TOKEN)), privateKey)
    expect(verifySandboxToken(permit, publicKey, 1500)).toBe('malformed')
    expect(verifySandboxToken(`alt_${permit}`, publicKey, 1500)).toBe('forged')
  })

  it('is malformed when it was signed and says something else', () => {
    const bytes = Buffer.from(JSON.stringify({ ...TOKEN, role: 'admin' }))
    const signature = sign(null, Buffer.concat([Buffer.from('airlock sandbox token 1\0'), bytes]), privateKey)
    const text = `alt_${bytes.toString('base64url')}.${signature.toString('base64url')}`
    expect(verifySandboxToken(text, publicKey, 1500)).toBe('malformed')
  })

  it.each([
    '',
    'alt_',
    'alt_.',
    signed.slice(4),
    `${signed}=`,
    ` ${signed}`,
    `${signed}.x`,
    signed.replace('.', '..'),
    `alt_${'a'.repeat(5000)}.${'a'.repeat(86)}`,
  ])('is malformed as %j', (text) => {
    expect(verifySandboxToken(text, publicKey, 1500)).toBe('malformed')
  })
})
