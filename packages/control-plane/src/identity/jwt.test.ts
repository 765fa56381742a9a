import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { FetchedKeys, fixedKeys, type KeySource } from './jwks.ts'
import { SignedTokens } from './jwt.ts'

const RULES = {
  issuer: 'https://id.example',
  audience: 'airlock',
  tenantClaim: 'tenant',
  roleClaim: 'role',
  agentsClaim: 'agents',
  clockToleranceS: 5,
}
const SECRET = 'a secret of at least thirty-two letters'
const CLAIMS = { tenant: 'acme', role: 'developer' }
const GOOD = { actor: 'jwt:alice', tenant: 'acme', role: 'developer', agents: null, platform: false }

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed = generateKeyPairSync('ed25519')

/** The issuer's own server: what it publishes, and how often it was asked. */
let published: { status: number; text: string; delayMs?: number }
let asked = 0
let server: Server
let url: string
let now: number
const clock = { now: () => now }

beforeAll(async () => {
  server = createServer((_request, response) => {
    asked++
    setTimeout(() => response.writeHead(published.status).end(published.text), published.delayMs ?? 0)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
})
afterAll(() => server.close())
beforeEach(() => {
  now = 1_800_000_000_000
  asked = 0
  published = { status: 200, text: jwks({ rsa: rsa.publicKey, ed: ed.publicKey }) }
})

function jwks(keys: Readonly<Record<string, KeyObject>>): string {
  return JSON.stringify({ keys: Object.entries(keys).map(([kid, key]) => ({ ...key.export({ format: 'jwk' }), kid })) })
}

function fetched(): FetchedKeys {
  return new FetchedKeys({ url, clock })
}

function tokens(options: { readonly keys?: KeySource | null; readonly secret?: string | null } = {}): SignedTokens {
  return new SignedTokens({ rules: RULES, clock, keys: fetched(), secret: null, ...options })
}

interface Made {
  readonly claims?: Record<string, unknown>
  readonly header?: { alg: string; kid?: string }
  readonly key?: KeyObject | Uint8Array
  readonly expS?: number | null
}

async function token({
  claims = {},
  header = { alg: 'RS256', kid: 'rsa' },
  key,
  expS = 60,
}: Made = {}): Promise<string> {
  const all = { iss: RULES.issuer, aud: RULES.audience, sub: 'alice', ...CLAIMS, ...claims }
  const jwt = new SignJWT(JSON.parse(JSON.stringify(all))).setProtectedHeader(header)
  if (expS !== null) jwt.setExpirationTime(Math.floor(now / 1000) + expS)
  return jwt.sign(key ?? rsa.privateKey)
}

describe('a good token', () => {
  it.each([
    ['RS256', { alg: 'RS256', kid: 'rsa' }, rsa.privateKey],
    ['PS512', { alg: 'PS512', kid: 'rsa' }, rsa.privateKey],
    ['EdDSA', { alg: 'EdDSA', kid: 'ed' }, ed.privateKey],
  ] as const)('signed by %s is its subject, with tenant and role from its claims', async (_alg, header, key) => {
    expect(await tokens().verify(await token({ header, key }))).toEqual({ principal: GOOD })
  })

  it('signed with the secret is accepted where there is one', async () => {
    const made = await token({ header: { alg: 'HS256' }, key: new TextEncoder().encode(SECRET) })
    expect(await tokens({ keys: null, secret: SECRET }).verify(made)).toEqual({ principal: GOOD })
    expect(await tokens().verify(made)).toEqual({ refused: 'token_algorithm', about: { alg: 'HS256' } })
  })

  it('may bind to agents, and names a role among those of other programs', async () => {
    const claims = { agents: ['a', 'b'], role: ['shop-admin', 'auditor'] }
    expect(await tokens().verify(await token({ claims }))).toEqual({
      principal: { ...GOOD, role: 'auditor', agents: ['a', 'b'] },
    })
  })

  it('is remembered until it expires', async () => {
    const verifier = tokens()
    const made = await token({ expS: 60 })
    await verifier.verify(made)
    now += 59_000
    expect(await verifier.verify(made)).toEqual({ principal: GOOD })
    now += 7_000
    expect(await verifier.verify(made)).toEqual({ refused: 'token_expired' })
  })
})

describe('fails closed', () => {
  const refused = async (made: string, options = {}) => tokens(options).verify(made)

  it.each([
    ['that expired', { expS: -6 }, 'token_expired'],
    ['without an end', { expS: null }, 'token_exp'],
    ['that is not good yet', { claims: { nbf: 1_800_000_006 } }, 'token_nbf'],
    ['of another issuer', { claims: { iss: 'https://evil.example' } }, 'token_iss'],
    ['for another audience', { claims: { aud: 'shop' } }, 'token_aud'],
    ['without an audience', { claims: { aud: undefined } }, 'token_aud'],
    ['without a subject', { claims: { sub: undefined } }, 'token_sub'],
    ['of another key by the same name', { key: other.privateKey }, 'token_signature'],
    ['of a key that nobody knows', { header: { alg: 'RS256', kid: 'ghost' } }, 'token_unknown_key'],
    ['without a tenant', { claims: { tenant: undefined } }, 'token_claims'],
    ['with a tenant that is no name', { claims: { tenant: '../x' } }, 'token_claims'],
    ['without a role', { claims: { role: undefined } }, 'token_claims'],
    ['with an unknown role', { claims: { role: 'root' } }, 'token_claims'],
    ['with two of our roles', { claims: { role: ['admin', 'auditor'] } }, 'token_claims'],
    ['bound to no agent at all', { claims: { agents: [] } }, 'token_claims'],
    ['bound to something that is no agent', { claims: { agents: [7] } }, 'token_claims'],
    ['whose subject would forge a line of a log', { claims: { sub: 'a\nkey:admin' } }, 'token_claims'],
  ] as const)('a token %s', async (_what, made, reason) => {
    expect(await refused(await token(made))).toMatchObject({ refused: reason })
  })

  it('a token without a signature, whatever it calls its algorithm', async () => {
    const bare = new UnsecuredJWT({ ...CLAIMS, sub: 'alice' })
      .setIssuer(RULES.issuer)
      .setAudience(RULES.audience)
      .setExpirationTime(Math.floor(now / 1000) + 60)
      .encode()
    for (const options of [{}, { secret: SECRET }])
      expect(await refused(bare, options)).toEqual({ refused: 'token_algorithm', about: { alg: 'none' } })
  })

  it('a token that is signed with the public key as if it were a secret', async () => {
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })
    const [head, payload] = [
      { alg: 'HS256', kid: 'rsa' },
      { ...CLAIMS, sub: 'alice', exp: now / 1000 + 60 },
    ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    const forged = `${head}.${payload}.${createHmac('sha256', pem).update(`${head}.${payload}`).digest('base64url')}`
    expect(await refused(forged)).toMatchObject({ refused: 'token_algorithm' })
    expect(await refused(forged, { secret: SECRET })).toMatchObject({ refused: 'token_signature' })
  })

  it('a secret that was published: whoever can read it could sign', () => {
    expect(() => fixedKeys(JSON.stringify({ keys: [{ kty: 'oct', k: 'AAAA' }] }))).toThrow('not a JWKS')
  })

  it.each(['', 'a.b.c', '..', 'eyJhbGciOiJSUzI1NiJ9..', `${'x'.repeat(8000)}.x.x`])(
    'what is no token: %j',
    async (text) => {
      expect(await refused(text)).toHaveProperty('refused')
    },
  )
})

describe('the keys of the issuer', () => {
  it('are fetched once for many tokens, and again when they are old', async () => {
    const verifier = tokens()
    const made = await token({ expS: 3600 })
    await Promise.all([verifier.verify(made), verifier.verify(made), verifier.verify(await token())])
    expect(asked).toBe(1)
    now += 11 * 60_000
    await verifier.verify(made)
    expect(asked).toBe(2)
  })

  it('are fetched once for a key that is new, and a token of a withdrawn key is over though it was good', async () => {
    const verifier = tokens()
    const old = await token({ expS: 3600 })
    await verifier.verify(old)
    published = { status: 200, text: jwks({ next: other.publicKey }) }
    const next = await token({ header: { alg: 'RS256', kid: 'next' }, key: other.privateKey })
    expect(await verifier.verify(next)).toEqual({ principal: GOOD })
    expect(asked).toBe(2)
    expect(await verifier.verify(old)).toEqual({ refused: 'token_unknown_key' })
  })

  it('are not fetched for every name that somebody makes up', async () => {
    const verifier = tokens()
    for (let i = 0; i < 20; i++) {
      const header = { alg: 'RS256', kid: `made-up-${i}` }
      expect(await verifier.verify(await token({ header }))).toEqual({ refused: 'token_unknown_key' })
    }
    expect(asked).toBe(2)
    now += 10_000
    const header = { alg: 'RS256', kid: 'made-up-0' }
    await verifier.verify(await token({ header }))
    expect(asked).toBe(2)
  })

  it.each([
    ['does not answer as it should', { status: 500, text: '' }],
    ['answers something else', { status: 200, text: '<html>' }],
    ['answers no keys', { status: 200, text: '{"keys":[]}' }],
    ['answers too much', { status: 200, text: ' '.repeat(300 * 1024) }],
    ['sends us elsewhere', { status: 302, text: '' }],
  ])(
    'are unavailable while the issuer %s: nobody is let in, and it is not asked at every call',
    async (_how, answer) => {
      const verifier = tokens()
      const made = await token()
      const good = published
      published = answer
      for (let i = 0; i < 5; i++)
        await expect(verifier.verify(made)).rejects.toMatchObject({ code: 'identity_unavailable', status: 503 })
      expect(asked).toBe(1)
      published = good
      now += 10_000
      expect(await verifier.verify(made)).toEqual({ principal: GOOD })
    },
  )

  it('are not believed for ever when the issuer is gone', async () => {
    const verifier = tokens()
    const made = await token({ expS: 3600 })
    await verifier.verify(made)
    published = { status: 500, text: '' }
    now += 9 * 60_000
    expect(await verifier.verify(made)).toEqual({ principal: GOOD })
    now += 2 * 60_000
    await expect(verifier.verify(made)).rejects.toMatchObject({ code: 'identity_unavailable' })
  })

  it('may come from a file', async () => {
    const keys = fixedKeys(jwks({ rsa: rsa.publicKey }))
    expect(await tokens({ keys }).verify(await token())).toEqual({ principal: GOOD })
    expect(asked).toBe(0)
  })
})
