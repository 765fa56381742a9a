import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'

const SECRET = 'a secret of at least thirty-two letters'
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })

let issuer: Server
let server: TestServer
let isUp = true

beforeAll(async () => {
  issuer = createServer((_request, response) => {
    const keys = [{ ...pair.publicKey.export({ format: 'jwk' }), kid: 'k1' }]
    response.writeHead(isUp ? 200 : 500).end(JSON.stringify({ keys }))
  })
  await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve))
  server = await startServer({
    env: {
      AIRLOCK_JWT_ISSUER: 'https://id.example',
      AIRLOCK_JWT_AUDIENCE: 'airlock',
      AIRLOCK_JWKS_URL: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/keys`,
      AIRLOCK_JWT_SECRET: SECRET,
    },
  })
}, 240_000)
afterAll(async () => {
  await server?.stop()
  issuer?.close()
})

function token(claims: Record<string, unknown>, how: 'key' | 'secret'): string {
  const times = { exp: Math.floor(Date.now() / 1000) + 300 }
  const who = { iss: 'https://id.example', aud: 'airlock', sub: 'alice', tenant: 'default', role: 'developer' }
  const header = how === 'key' ? { alg: 'ES256', kid: 'k1' } : { alg: 'HS256' }
  const text = [header, { ...who, ...times, ...claims }].map((part) => base64url(JSON.stringify(part))).join('.')
  const signature =
    how === 'key'
      ? sign('sha256', Buffer.from(text), { key: pair.privateKey, dsaEncoding: 'ieee-p1363' })
      : createHmac('sha256', SECRET).update(text).digest()
  return `${text}.${base64url(signature)}`
}

function base64url(bytes: string | Buffer): string {
  return Buffer.from(bytes).toString('base64url')
}

const client = (claims: Record<string, unknown>, how: 'key' | 'secret' = 'secret') =>
  new Airlock({ url: server.url, apiKey: token(claims, how) })

describe('tokens of an identity provider, through the running product', () => {
  // First: nobody has asked the issuer yet.
  it('are nobody while the issuer does not answer, and that is not our fault to be called 500', async () => {
    isUp = false
    const answer = await fetch(`${server.url}/v1/whoami`, { headers: { authorization: `Bearer ${token({}, 'key')}` } })
    expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code: 'identity_unavailable' } }])
    expect(await client({}).whoami()).toMatchObject({ actor: 'jwt:alice' })
    isUp = true
    // The issuer is not asked at every call, so it takes a moment until that is noticed.
    const attempt = async () =>
      client({}, 'key')
        .whoami()
        .catch(() => undefined)
    expect(await waitFor(attempt, { signal: deadline(100_000), everyMs: 500 })).toMatchObject({ actor: 'jwt:alice' })
  })

  it('make a sandbox for who they say, and evidence names the subject', async () => {
    const airlock = client({ role: 'developer' })
    const me = { actor: 'jwt:alice', tenant: 'default', role: 'developer', agents: null, platform: false }
    expect(await airlock.whoami()).toEqual(me)
    await using sandbox = await airlock.sandboxes.create()
    expect((await sandbox.run(['echo', 'hello'])).stdout).toBe('hello\n')
    const auditor = client({ role: 'auditor' })
    const { items } = await auditor.audit.events({ sandbox: sandbox.id, point: 'command.run', limit: 1 })
    expect(items.map((record) => record.actor)).toEqual(['jwt:alice'])
  })

  it('never concern the platform, and an admin by token who is bound to agents decides nothing', async () => {
    const admin = client({ role: 'admin' })
    await expect(admin.tenants.create('mine')).rejects.toMatchObject({ code: 'forbidden' })
    await expect(admin.keys.create({ name: 'x', role: 'admin', platform: true })).rejects.toMatchObject({
      code: 'forbidden',
    })
    const bound = client({ role: 'admin', agents: ['default'] })
    for (const attempt of [
      () => bound.agents.approve('default'),
      () => bound.agents.resume('default'),
      () => bound.keys.create({ name: 'x', role: 'developer' }),
      () => bound.audit.events(),
      () => bound.audit.head(),
      () => bound.audit.chains(),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('of a tenant that is not there are nobody', async () => {
    const stranger = client({ tenant: 'nowhere' })
    await expect(stranger.whoami()).rejects.toMatchObject({ code: 'unauthenticated' })
  })
})
