import { AirlockError, ROUTES, type Route } from '@airlock/contract'
import * as fc from 'fast-check'
import { request } from 'node:http'
import { connect } from 'node:net'
import { systemClock } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sendThenRead } from '../../../../test/support/send-then-read.ts'
import { PageSessions } from '../identity/page-sessions.ts'
import { AMPLE_RATES, KEYS, startTestApi, type TestApi } from './testing/test-api.ts'
import { testApp } from './testing/test-app.ts'
import { TEST_EVENTS } from './testing/test-events.ts'
import { TEST_METRICS } from './testing/test-metrics.ts'
import { TEST_PAGE } from './testing/test-page.ts'

const SANDBOX = `sbx_${'0'.repeat(26)}`
const COMMAND = `cmd_${'0'.repeat(26)}`
/** More than the buffers of a connection hold, and than strangers may send in vain. */
const REFUSED_BYTES = 60 * 1024 * 1024

let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(async () => api.close())

interface Given {
  readonly key?: string | null
  readonly headers?: Record<string, string>
  readonly body?: unknown
  readonly text?: string
}

async function call(method: string, path: string, given: Given = {}): Promise<Response> {
  const key = given.key === undefined ? KEYS.developer : given.key
  const text = given.text ?? (given.body === undefined ? undefined : JSON.stringify(given.body))
  return fetch(`${api.url}${path}`, {
    method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      ...given.headers,
    },
    ...(text === undefined ? {} : { body: text }),
  })
}

async function errorOf(response: Response): Promise<unknown> {
  const { error } = (await response.json()) as { error: { requestId: string } }
  expect(error.requestId).toBe(response.headers.get('x-request-id'))
  return { ...error, requestId: undefined, status: response.status }
}

function refused(code: ConstructorParameters<typeof AirlockError>[0], message?: string): unknown {
  const error = new AirlockError(code, message)
  const { hint, retryable, status } = error
  return { code, message: message ?? error.message, hint, retryable, requestId: undefined, status }
}

async function createSandbox(body: object = {}): Promise<{ id: string }> {
  const response = await call('POST', '/v1/sandboxes', { body })
  expect(response.status).toBe(200)
  return (await response.json()) as { id: string }
}

describe('authentication', () => {
  it('asks for a key on every route that is not public, before anything else', async () => {
    for (const route of Object.values<Route>(ROUTES).filter((one) => one.roles !== 'public')) {
      const path = route.path.replace('{id}', 'x').replace('{command}', 'y').replace('{name}', 'z')
      const response = await call(route.method, path, { key: null })
      // Clients of OpenAI read two words more.
      const more = path.startsWith('/v1/openai/') ? { type: 'authentication_error', param: null } : {}
      const expected = { ...Object(refused('unauthenticated')), ...more }
      expect([route.path, await errorOf(response)]).toEqual([route.path, expected])
    }
  })

  it('refuses a key with one wrong letter', async () => {
    const response = await call('GET', '/v1/whoami', { key: `${KEYS.developer.slice(0, -1)}2` })
    expect(await errorOf(response)).toEqual(refused('unauthenticated'))
  })

  it('refuses a role that may not, and notes it as evidence', async () => {
    const response = await call('GET', '/v1/audit/head')
    expect(await errorOf(response)).toMatchObject({ code: 'forbidden', status: 403 })
    expect(api.notes.at(-1)).toMatchObject({ point: 'auth.refuse', status: 'denied', actor: 'key:developer' })
  })

  it('refuses a large body without a key before reading it', async () => {
    const answer = await raw(
      `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{`,
    )
    expect(answer).toContain('HTTP/1.1 401')
  })

  it('answers who the caller is', async () => {
    const response = await call('GET', '/v1/whoami')
    expect(await response.json()).toEqual({
      actor: 'key:developer',
      tenant: 'default',
      role: 'developer',
      agents: null,
      platform: false,
    })
  })
})

describe('bad input gets a clear error and changes nothing', () => {
  const create = (body: unknown): readonly [string, string, Given] => ['POST', '/v1/sandboxes', { body }]
  const run = (body: unknown): readonly [string, string, Given] => [
    'POST',
    `/v1/sandboxes/${SANDBOX}/commands`,
    { body },
  ]
  const files = (query: string): readonly [string, string, Given] => [
    'GET',
    `/v1/sandboxes/${SANDBOX}/files${query}`,
    {},
  ]
  const bad: Record<string, readonly [string, string, Given, string, RegExp]> = {
    'an unknown field': [...create({ nmae: 'x' }), 'invalid_request', /nmae/],
    'an unknown nested field': [...create({ limits: { memory: 1 } }), 'invalid_request', /limits.*memory/],
    'a wrong type': [...create({ ttlMs: '10' }), 'invalid_request', /^ttlMs:/],
    'a body that is an array': [...create([]), 'invalid_request', /expected object/],
    'a body that is null': [...create(null), 'invalid_request', /expected object/],
    'an over-long name': [...create({ name: 'a'.repeat(64) }), 'invalid_request', /^name:/],
    'a name with a slash': [...create({ name: 'a/b' }), 'invalid_request', /^name:/],
    'a negative limit': [...create({ limits: { memoryBytes: -1 } }), 'invalid_request', /^limits\.memoryBytes:/],
    'a huge limit': [...create({ limits: { cpus: 1e9 } }), 'invalid_request', /^limits\.cpus:/],
    'a limit that is not a number': [...create({ limits: { pids: null } }), 'invalid_request', /^limits\.pids:/],
    'a TTL past the bound': [...create({ ttlMs: 25 * 3_600_000 }), 'invalid_request', /^ttlMs:/],
    'too many labels': [
      ...create({ labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, 'x'])) }),
      'invalid_request',
      /^labels:/,
    ],
    'an environment name that is none': [...create({ env: { 'A-B': 'x' } }), 'invalid_request', /^env/],
    'NUL in an environment variable': [...create({ env: { A: 'x\0' } }), 'invalid_request', /^env\.A:.*NUL/],
    'an unknown template': [...create({ template: 'nope' }), 'template_not_found', /./],
    'both argv and shell': [...run({ argv: ['a'], shell: 'b' }), 'invalid_request', /either argv or shell/],
    'neither argv nor shell': [...run({}), 'invalid_request', /either argv or shell/],
    'NUL in argv': [...run({ argv: ['a\0b'] }), 'invalid_request', /^argv\.0:.*NUL/],
    'a cwd with ..': [...run({ argv: ['a'], cwd: '/workspace/../etc' }), 'invalid_path', /^cwd:/],
    'a timeout of zero': [...run({ argv: ['a'], timeoutMs: 0 }), 'invalid_request', /^timeoutMs:/],
    'a path with ..': [...files('?path=../etc/passwd'), 'invalid_path', /^path:/],
    'a path with an encoded NUL': [...files('?path=a%00b'), 'invalid_path', /^path:.*NUL/],
    'an over-long path': [...files(`?path=${'a'.repeat(5000)}`), 'invalid_path', /^path:/],
    'no path': [...files(''), 'invalid_request', /^path:/],
    'a path given twice': [...files('?path=a&path=b'), 'invalid_request', /^path:/],
    'an unknown query parameter': [...files('?path=a&x=1'), 'invalid_request', /"x"/],
    'a query where none is taken': ['GET', '/v1/whoami?x=1', {}, 'invalid_request', /no query/],
    'an id that is none': ['GET', '/v1/sandboxes/..%2fx', {}, 'invalid_request', /^id:/],
    'a limit of a page past the bound': ['GET', '/v1/sandboxes?limit=201', {}, 'invalid_request', /^limit:/],
    'a label without a value': ['GET', '/v1/sandboxes?label=a', {}, 'invalid_request', /^label:/],
    'an unknown signal': [
      'POST',
      `/v1/sandboxes/${SANDBOX}/commands/${COMMAND}/signal`,
      { body: { signal: 'SIGSEGV' } },
      'invalid_request',
      /^signal:/,
    ],
    'malformed JSON': ['POST', '/v1/sandboxes', { text: '{"a":' }, 'invalid_request', /not valid JSON/],
    '__proto__ in a body': ['POST', '/v1/sandboxes', { text: '{"__proto__":{}}' }, 'invalid_request', /__proto__/],
    'a label named __proto__': [
      'POST',
      '/v1/sandboxes',
      { text: '{"labels":{"__proto__":"x"}}' },
      'invalid_request',
      /"__proto__"/,
    ],
    'a variable named __proto__ in escapes': [
      'POST',
      '/v1/sandboxes',
      { text: '{"env":{"\\u005f_proto__":"x"}}' },
      'invalid_request',
      /"__proto__"/,
    ],
    'another content type': [
      'POST',
      '/v1/sandboxes',
      { text: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      'unsupported_media_type',
      /application\/json/,
    ],
    'a compressed body': [
      'POST',
      '/v1/sandboxes',
      { body: {}, headers: { 'content-encoding': 'gzip' } },
      'unsupported_media_type',
      /compressed/,
    ],
    'a body where none is taken': [
      'DELETE',
      `/v1/sandboxes/${SANDBOX}/files?path=a`,
      { body: { a: 1 } },
      'invalid_request',
      /no body/,
    ],
    'a long body where none is taken': [
      'DELETE',
      `/v1/sandboxes/${SANDBOX}/files?path=a`,
      { text: `{${' '.repeat(2000)}}` },
      'body_too_large',
      /1024/,
    ],
    'an unknown route': ['GET', '/v1/nothing', {}, 'route_not_found', /GET \/v1\/nothing/],
    'a wrong method': ['DELETE', '/v1/sandboxes', {}, 'route_not_found', /DELETE/],
    'a malformed escape in the URL': ['GET', '/v1/sandboxes/%zz', {}, 'invalid_request', /URL/],
    'an over-long path parameter': ['PUT', `/v1/sandboxes/by-name/${'a'.repeat(9000)}`, {}, 'invalid_request', /URL/],
    'a Last-Event-ID that is none': [
      'GET',
      `/v1/sandboxes/${SANDBOX}/commands/${COMMAND}/output`,
      { headers: { 'last-event-id': 'x' } },
      'invalid_request',
      /Last-Event-ID/,
    ],
  }

  for (const [name, [method, path, given, code, message]] of Object.entries(bad))
    it(`refuses ${name}`, async () => {
      const before = api.core.sandboxes.size
      const response = await call(method, path, given)
      const error = (await errorOf(response)) as { message: string; status: number }
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) as unknown })
      expect(response.status).toBeLessThan(500)
      expect(api.core.sandboxes.size).toBe(before)
    })

  it.each(['host: other', `authorization: Bearer ${KEYS.admin}`])('refuses a second %s', async (header) => {
    const head = `GET /v1/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${KEYS.developer}\r\n`
    expect(await raw(`${head}connection: close\r\n\r\n`)).toContain('HTTP/1.1 200')
    expect(await raw(`${head}${header}\r\nconnection: close\r\n\r\n`)).toContain('HTTP/1.1 400')
  })

  it('takes {} wherever no body is needed, and text that only speaks of __proto__', async () => {
    const { id } = await createSandbox({ labels: { about: '__proto__' } })
    expect((await call('POST', `/v1/sandboxes/${id}/pause`, { body: {} })).status).toBeLessThan(300)
    for (const route of Object.values<Route>(ROUTES).filter((one) => !one.body && one.sends !== 'bytes')) {
      if (route.method === 'GET' || route.roles === 'public') continue
      const path = route.path.replaceAll(/\{\w+\}/g, 'x')
      const response = await call(route.method, path, { body: {}, key: KEYS.admin })
      expect([path, await response.text()]).toEqual([path, expect.not.stringContaining('takes no body')])
    }
  })

  it('never answers 500 to arbitrary JSON', async () => {
    const paths = ['/v1/sandboxes', `/v1/sandboxes/${SANDBOX}/commands`, `/v1/sandboxes/${SANDBOX}/files/move`]
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), fc.json({ maxDepth: 4 }), async (path, text) => {
        const response = await call('POST', path, { text })
        await response.arrayBuffer()
        expect(response.status).toBeLessThan(500)
      }),
      { numRuns: 150 },
    )
  })

  it('never answers 500 to arbitrary paths and queries', async () => {
    await fc.assert(
      fc.asyncProperty(fc.webPath(), fc.webQueryParameters(), async (path, query) => {
        const response = await call('GET', `/v1/sandboxes/${path}?${query}`)
        await response.arrayBuffer()
        expect(response.status).toBeLessThan(500)
      }),
      { numRuns: 100 },
    )
  })
})

describe('bounds', () => {
  const head = (lines: readonly string[]): string =>
    [
      'POST /v1/sandboxes HTTP/1.1',
      'host: localhost',
      `authorization: Bearer ${KEYS.developer}`,
      ...lines,
      '\r\n',
    ].join('\r\n')

  it('refuses a body that says it has 1 GB, without reading it', async () => {
    const before = api.core.sandboxes.size
    const answer = await raw(`${head(['content-type: application/json', 'content-length: 1000000000'])}{`)
    expect(answer).toContain('HTTP/1.1 413')
    expect(answer).toContain('"body_too_large"')
    expect(answer).toContain('connection: close')
    expect(api.core.sandboxes.size).toBe(before)
  })

  it('refuses an endless chunked body soon after the bound', async () => {
    const chunk = Buffer.alloc(64 * 1024, ' ')
    const { status, sent } = await new Promise<{ status: number | undefined; sent: number }>((resolve, reject) => {
      let sent = 0
      const headers = { authorization: `Bearer ${KEYS.developer}`, 'content-type': 'application/json' }
      const outgoing = request(`${api.url}/v1/sandboxes`, { method: 'POST', headers }, (response) => {
        response.resume()
        resolve({ status: response.statusCode, sent })
      })
      outgoing.on('error', reject)
      const pump = (): void => {
        if (outgoing.destroyed || sent > 1e9) return
        sent += chunk.length
        if (outgoing.write(chunk)) setImmediate(pump)
        else outgoing.once('drain', pump)
      }
      pump()
    })
    expect(status).toBe(413)
    expect(sent).toBeLessThan(64e6)
  })

  it('answers a refused upload of any size, also to a client that sends all of it before it reads', async () => {
    const upload = async (query: string) => {
      const path = `/v1/sandboxes/${SANDBOX}/files${query}`
      return sendThenRead({ url: api.url, key: KEYS.developer, path, bytes: REFUSED_BYTES })
    }
    expect(await upload('')).toMatch(/^HTTP\/1.1 400 [^]*"invalid_request"/)
    expect(await upload('?path=/workspace/absent')).toMatch(/^HTTP\/1.1 404 [^]*"sandbox_not_found"/)
  })

  it('answers a head that is too large with 431 in the one shape', async () => {
    const answer = await raw(head([`x-bomb: ${'x'.repeat(20_000)}`]))
    expect(answer).toContain('HTTP/1.1 431')
    expect(answer).toMatch(/x-request-id: req_/)
    expect(answer).toContain('"code":"invalid_request"')
  })

  it('answers what is not HTTP with 400 in the one shape', async () => {
    const answer = await raw('\u0000\u0001\r\n\r\n')
    expect(answer).toContain('HTTP/1.1 400')
    expect(answer).toContain('"code":"invalid_request"')
  })

  it('sends 100 Continue only to a caller with a key', async () => {
    const lines = ['content-type: application/json', 'content-length: 2', 'expect: 100-continue']
    expect(await raw(head(lines), { afterwards: '{}' })).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200/)
    expect(await raw(head(lines).replace(KEYS.developer, 'al_nobody'))).toMatch(/^HTTP\/1.1 401/)
  })
})

describe('headers', () => {
  it('answers its own request id and never that of the client', async () => {
    const response = await call('GET', '/healthz', { headers: { 'x-request-id': 'mine' } })
    expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-z]{26}$/)
  })

  it('allows no sniffing, no framing and no other origin', async () => {
    const response = await call('GET', '/healthz', { headers: { origin: 'https://example.com' } })
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
    })
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  })

  it('answers on loopback to loopback names only', async () => {
    const answers = await Promise.all(
      ['localhost', 'LOCALHOST:1', '127.0.0.1:7070', '[::1]:80', 'evil.example', 'localhost.evil.example', '::1'].map(
        async (host) => (await raw(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)).slice(9, 12),
      ),
    )
    expect(answers).toEqual(['200', '200', '200', '200', '403', '403', '403'])
  })

  it('refuses a target in absolute form that names another host', async () => {
    const targets = ['http://localhost/healthz', 'HTTP://[::1]:80/healthz', 'http://evil.example/healthz']
    const hidden = ['http://localhost@evil.example/healthz', 'https://evil.example:80/healthz']
    const answers = await Promise.all(
      [...targets, ...hidden].map(async (target) =>
        (await raw(`GET ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`)).slice(9, 12),
      ),
    )
    expect(answers).toEqual(['200', '200', '403', '403', '403'])
  })
})

describe('errors', () => {
  it('logs an internal error with its request id and tells the caller nothing of it', async () => {
    const other = await startTestApi({
      getSandbox: async () => {
        throw new TypeError('secret detail')
      },
    })
    const response = await fetch(`${other.url}/v1/sandboxes/${SANDBOX}`, {
      headers: { authorization: `Bearer ${KEYS.developer}` },
    })
    const text = await response.text()
    await other.close()
    expect([response.status, text]).toEqual([500, expect.not.stringContaining('secret')])
    expect(other.logged.join('')).toContain('secret detail')
    expect(other.logged.join('')).toContain(response.headers.get('x-request-id'))
  })

  it('never lets out a field that the contract does not have', async () => {
    const created = await createSandbox()
    const other = await startTestApi({
      getSandbox: async () =>
        Object.assign(
          { ...[...api.core.sandboxes.values()].find((one) => one.id === created.id) },
          { permit: 'secret' },
        ) as never,
    })
    const response = await fetch(`${other.url}/v1/sandboxes/${created.id}`, {
      headers: { authorization: `Bearer ${KEYS.developer}` },
    })
    const text = await response.text()
    await other.close()
    expect([response.status, text]).toEqual([500, expect.not.stringContaining('secret')])
  })

  it('says when trying again makes sense', async () => {
    const other = await startTestApi({
      createSandbox: async () => {
        throw new AirlockError('capacity_exhausted', undefined, { retryAfterS: 7 })
      },
    })
    const response = await fetch(`${other.url}/v1/sandboxes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEYS.developer}` },
    })
    await other.close()
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7'])
  })

  it('refuses to listen beyond loopback without TLS', async () => {
    const { createApi } = await import('./server.ts')
    const refuse = async () => Promise.reject(new AirlockError('unauthenticated'))
    const edge = await createApi({
      app: { ...testApp(api.core), ...api.who, events: TEST_EVENTS, metrics: TEST_METRICS },
      authenticator: { authenticate: refuse, principalOfKey: refuse },
      audit: { require: async () => {}, note: () => {}, flush: async () => {} },
      clock: systemClock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      tls: null,
      trustedProxy: false,
      requestRates: AMPLE_RATES,
      page: { files: TEST_PAGE, sessions: new PageSessions(systemClock), cookie: 'airlock-test' },
    })
    await expect(edge.listen('0.0.0.0', 0)).rejects.toMatchObject({ code: 'config_invalid' })
  })
})

/** What comes back on a connection on which exactly this is sent, until the server closes it or falls silent. */
async function raw(text: string, options: { readonly afterwards?: string } = {}): Promise<string> {
  const { hostname, port } = new URL(api.url)
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.setTimeout(options.afterwards === undefined ? 1500 : 500, () => {
      socket.destroy()
      resolve(answer)
    })
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
      if (options.afterwards !== undefined && answer.includes('100 Continue') && !answer.includes(' 200 '))
        socket.write(options.afterwards)
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}
