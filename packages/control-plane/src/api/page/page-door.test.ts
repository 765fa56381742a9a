import { AirlockError } from '@airlock/contract'
import { systemClock } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PageSessions } from '../../identity/page-sessions.ts'
import { createApi } from '../server.ts'
import { AMPLE_RATES, KEYS, startTestApi, type TestApi } from '../testing/test-api.ts'
import { testApp } from '../testing/test-app.ts'
import { TEST_EVENTS } from '../testing/test-events.ts'
import { TEST_METRICS } from '../testing/test-metrics.ts'
import { TEST_PAGE } from '../testing/test-page.ts'

const sessions = new PageSessions(systemClock)

let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(async () => api.close())

const OWN = { 'airlock-page': '1' }

async function post(path: string, body: object, headers: Record<string, string> = OWN): Promise<Response> {
  return fetch(`${api.url}${path}`, { method: 'POST', body: JSON.stringify(body), headers })
}

async function cookieOf(key: string): Promise<string> {
  const response = await post('/sign-in', { key })
  expect(response.status).toBe(204)
  return response.headers.get('set-cookie')?.split(';')[0] ?? ''
}

async function whoami(headers: Record<string, string>): Promise<unknown> {
  const response = await fetch(`${api.url}/v1/whoami`, { headers })
  return response.status === 200 ? response.json() : response.status
}

describe('the files of the page', () => {
  it('are sent with a policy that lets nothing in, and the named ones for ever', async () => {
    const index = await fetch(`${api.url}/`)
    expect(await index.text()).toContain('<title>Airlock')
    const policy = index.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(Object.fromEntries(index.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    })
    const script = await fetch(`${api.url}/assets/main-AAAA.js`)
    expect([script.headers.get('cache-control'), script.headers.get('content-encoding')]).toEqual([
      'public, max-age=31536000, immutable',
      'gzip',
    ])
    const again = await fetch(`${api.url}/`, { headers: { 'if-none-match': index.headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
    for (const path of ['/assets/other.js', '/assets/..%2fpackage.json', '/assets/'])
      expect((await fetch(`${api.url}${path}`)).status).toBe(404)
  })
})

describe('signing in', () => {
  it('gives a cookie with the rights of the key, until it is signed out', async () => {
    const response = await post('/sign-in', { key: KEYS.auditor })
    expect(response.headers.get('set-cookie')).toMatch(
      /^airlock-test=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    )
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
    expect(await whoami({ ...OWN, cookie })).toMatchObject({ actor: 'key:auditor', role: 'auditor' })
    const made = await fetch(`${api.url}/v1/sandboxes`, { method: 'POST', headers: { ...OWN, cookie } })
    expect(made.status).toBe(403)
    const left = await post('/sign-out', {}, { ...OWN, cookie })
    expect(left.headers.get('set-cookie')).toContain('Max-Age=0')
    expect(await whoami({ ...OWN, cookie })).toBe(401)
    expect(api.notes).toContainEqual(expect.objectContaining({ point: 'auth.sign_out', actor: 'key:auditor' }))
  })

  it('replaces the session of the cookie that it came with', async () => {
    const before = await cookieOf(KEYS.developer)
    await post('/sign-in', { key: KEYS.admin }, { ...OWN, cookie: before })
    expect(await whoami({ ...OWN, cookie: before })).toBe(401)
  })

  it('refuses what is no key, and bounds how often one address tries', async () => {
    const other = await startTestApi()
    const tries: number[] = []
    for (let attempt = 0; attempt < 12; attempt++)
      tries.push((await fetch(`${other.url}/sign-in`, { method: 'POST', body: '{"key":"al_x"}', headers: OWN })).status)
    await other.close()
    expect([tries.slice(0, 10).every((status) => status === 401), tries.at(-1)]).toEqual([true, 429])
  })

  it.each([['{'], ['[]'], ['{"key":1}'], ['{"key":"a","link":"b"}'], ['{"link":""}']])('refuses %s', async (body) => {
    const other = await startTestApi()
    const response = await fetch(`${other.url}/sign-in`, { method: 'POST', body, headers: OWN })
    await other.close()
    expect(response.status).toBe(400)
  })
})

it('is told to browsers as one for https alone where a proxy speaks it', async () => {
  const edge = await createApi({
    app: { ...testApp(api.core), ...api.who, events: TEST_EVENTS, metrics: TEST_METRICS },
    authenticator: {
      authenticate: async () => Promise.reject(new AirlockError('unauthenticated')),
      principalOfKey: async () => ({ actor: 'key:a', tenant: 'default', role: 'admin', agents: null, platform: true }),
    },
    audit: { require: async () => {}, note: () => {}, flush: async () => {} },
    clock: systemClock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    tls: null,
    trustedProxy: true,
    requestRates: AMPLE_RATES,
    page: { files: TEST_PAGE, sessions, cookie: 'airlock-test' },
  })
  const url = await edge.listen('127.0.0.1', 0)
  const link = sessions.openLink('a')
  const asks = async (): Promise<Response> =>
    fetch(`${url}/sign-in`, { method: 'POST', body: JSON.stringify({ link }), headers: OWN })
  const [first, second] = [await asks(), await asks()]
  await edge.close()
  expect(first.headers.get('set-cookie')).toMatch(
    /^__Host-airlock-test=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/,
  )
  expect([first.status, second.status, second.headers.get('set-cookie')]).toEqual([204, 401, null])
})

describe('the cookie', () => {
  it.each([
    ['no header of the page', {}],
    ['another site', { ...OWN, 'sec-fetch-site': 'cross-site' }],
    ['another port of this host', { ...OWN, 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
    ['the origin of another port', { ...OWN, origin: 'http://127.0.0.1:1' }],
    ['an origin that is hidden', { ...OWN, origin: 'null' }],
  ])('counts for nothing with %s, reading included', async (_what, headers) => {
    const cookie = await cookieOf(KEYS.developer)
    expect(await whoami({ ...headers, cookie })).toBe(403)
    expect(await whoami({ ...OWN, 'sec-fetch-site': 'same-origin', origin: api.url, cookie })).toMatchObject({
      role: 'developer',
    })
    const response = await fetch(`${api.url}/v1/sandboxes`, { method: 'POST', headers: { ...headers, cookie } })
    expect(response.status).toBe(403)
    await post('/sign-out', {}, { ...OWN, cookie })
  })

  it('counts for nothing at /mcp, and a key beside it wins', async () => {
    const other = await startTestApi()
    const signedIn = await fetch(`${other.url}/sign-in`, {
      method: 'POST',
      body: JSON.stringify({ key: KEYS.admin }),
      headers: OWN,
    })
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
    const asked = { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' }
    const headers = {
      ...OWN,
      cookie,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    expect((await fetch(`${other.url}/mcp`, { ...asked, headers })).status).toBe(401)
    const both = { ...headers, authorization: `Bearer ${KEYS.developer}` }
    expect((await fetch(`${other.url}/mcp`, { ...asked, headers: both })).status).toBe(200)
    const who = await fetch(`${other.url}/v1/whoami`, { headers: both })
    expect(await who.json()).toMatchObject({ role: 'developer' })
    await other.close()
  })
})
