import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ModelUpstream } from '../support/model-upstream.ts'
import { requires } from '../support/requires.ts'
import { startModelServer } from './support.ts'

const MARK = 'spoofed-9c41'
const BODY = { model: 'small', messages: [{ role: 'user', content: 'hi' }] }
const JSON_HEADERS = ['Host: 127.0.0.1:47080', 'Content-Type: application/json']

interface Spoof {
  readonly name: string
  /** Bytes of a request, as latin1. */
  readonly bytes: string
  /** What the door does: it passes on a request without the spoof, or refuses all of it. */
  readonly door: 'cleans' | 'refuses'
}

function request(head: readonly string[], body: string, line = 'POST /v1/chat/completions HTTP/1.1'): string {
  const length = head.some((name) => /^content-length/i.test(name))
    ? []
    : [`Content-Length: ${Buffer.byteLength(body)}`]
  return `${[line, ...JSON_HEADERS, ...head, ...length, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`
}
const plain = JSON.stringify(BODY)

const HEADERS = [
  'Authorization',
  'aUtHoRiZaTiOn',
  'X-Api-Key',
  'Api-Key',
  'Cookie',
  'Proxy-Authenticate',
  'X-LiteLLM-End-User-Id',
  'x-litellm-end-user-id',
  'x_litellm_end_user_id',
  'X-LITELLM-CUSTOMER-ID',
  'x-litellm-tags',
  'x-litellm-api-key',
  'x-litellm-spend-logs-metadata',
  'x-litellm-timeout',
  'x-litellm-num-retries',
  'OpenAI-Organization',
  'OpenAI-Project',
  'OpenAI-Beta',
  'Anthropic-Workspace-Id',
  'Anthropic-Beta',
  'Idempotency-Key',
  'X-Stainless-Retry-Count',
  'Traceparent',
  'Tracestate',
  'Baggage',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'Forwarded',
  'X-Real-IP',
  'X-Original-URL',
  'X-HTTP-Method-Override',
  'User-Agent',
  'Origin',
  'Referer',
  'Helicone-Auth',
  'X-Portkey-Config',
  'X-User-Id',
  'X-Tenant',
  'Airlock-Reservation',
]
const DROPPED = ['user', 'safety_identifier', 'prompt_cache_key']
const REFUSED = [
  'customer',
  'end_user',
  'tags',
  'organization',
  'api_key',
  'api_base',
  'base_url',
  'litellm_metadata',
  'litellm_session_id',
  'proxy_server_request',
  'extra_headers',
  'extra_body',
  'fallbacks',
  'mock_response',
  'workspace_id',
  'billing_policy',
  '__proto__',
]
const withField = (name: string) => `{"${name}":"${MARK}",${plain.slice(1)}`

const SPOOFS: readonly Spoof[] = [
  ...HEADERS.map((name): Spoof => ({
    name: `header ${name}`,
    bytes: request([`${name}: ${MARK}`], plain),
    door: 'cleans',
  })),
  {
    name: 'a header twice',
    bytes: request([`X-Litellm-Tags: ${MARK}`, `x-litellm-tags: ${MARK}`], plain),
    door: 'cleans',
  },
  ...DROPPED.map((name): Spoof => ({ name: `field ${name}`, bytes: request([], withField(name)), door: 'cleans' })),
  { name: 'metadata', bytes: request([], `{"metadata":{"user_id":"${MARK}"},${plain.slice(1)}`), door: 'cleans' },
  ...REFUSED.map((name): Spoof => ({ name: `field ${name}`, bytes: request([], withField(name)), door: 'refuses' })),
  ...[
    ['a field twice', `{"user":"${MARK}","user":"${MARK}",${plain.slice(1)}`],
    ['a field twice, escaped', `{"user":"a","\\u0075ser":"${MARK}",${plain.slice(1)}`],
    ['a nested field', plain.replace('"role"', `"user":"${MARK}","role"`)],
    ['a model twice', `{"model":"${MARK}",${plain.slice(1)}`],
    ['a field after the body', `${plain},{"user":"${MARK}"}`],
  ].map(([name = '', body = '']): Spoof => ({ name, bytes: request([], body), door: 'refuses' })),
  ...[
    ['a folded header', [`X-A: b\r\n Authorization: ${MARK}`]],
    ['two lengths', ['Content-Length: 5', `Content-Length: ${plain.length}`]],
    ['a length and chunks', [`Content-Length: ${plain.length}`, 'Transfer-Encoding: chunked']],
    ['chunks', ['Transfer-Encoding: chunked']],
    ['a hidden transfer encoding', ['Transfer-Encoding: xchunked']],
    ['an encoding', ['Content-Encoding: gzip']],
    ['an upgrade', ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']],
    ['a second host', [`Host: ${MARK}`]],
    ['a trailer', ['Trailer: Authorization']],
    ['proxy credentials', [`Proxy-Authorization: Basic ${MARK}`]],
  ].map(([name, head]): Spoof => ({ name: String(name), bytes: request(head as string[], plain), door: 'refuses' })),
  ...[
    'POST http://127.0.0.1:47080/v1/chat/completions HTTP/1.1',
    'POST /v1/../key/generate HTTP/1.1',
    'POST /v1/%2e%2e/key/generate HTTP/1.1',
    'POST /v1/chat%2Fcompletions HTTP/1.1',
    'POST /v1/chat/completions/ HTTP/1.1',
    'POST //v1/chat/completions HTTP/1.1',
    `POST /v1/chat/completions?user=${MARK} HTTP/1.1`,
    'POST /key/generate HTTP/1.1',
    'GET /spend/logs HTTP/1.1',
    'POST /v1/files HTTP/1.1',
    'POST /v1/batches HTTP/1.1',
    'POST /call HTTP/1.1',
    'POST /v1/chat/completions HTTP/1.0',
    'PRI * HTTP/2.0',
  ].map((line): Spoof => ({ name: line, bytes: request([], plain, line), door: 'refuses' })),
]

/** Sends each, alone on a connection, and prints its status. */
const PROGRAM = `import json, socket, sys
for bytes in json.load(open('spoofs.json')):
    s = socket.create_connection(('127.0.0.1', 47080))
    s.settimeout(60)
    answer = b''
    try:
        s.sendall(bytes.encode('latin1'))
        while True:
            piece = s.recv(65536)
            if not piece: break
            answer += piece
    except OSError:
        pass
    print(answer[:12].decode('latin1') or 'cut')`

let upstream: ModelUpstream
let server: Awaited<ReturnType<typeof startModelServer>>
let box: Sandbox

beforeAll(async () => {
  upstream = await ModelUpstream.start()
  server = await startModelServer(upstream.port)
  box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({ models: ['small'] })
}, 240_000)
afterAll(async () => {
  await server?.stop()
  server?.clean()
  await upstream?.stop()
})

describe('who asks and pays', requires('root', 'python3'), () => {
  it('is what the server says, whatever a program inside sends', async () => {
    const all = [{ name: 'control', bytes: request([], plain), door: 'cleans' as const }, ...SPOOFS]
    await box.files.write('spoofs.json', JSON.stringify(all.map(({ bytes }) => bytes)))
    const { stdout, stderr } = await box.run(['python3', '-c', PROGRAM])
    expect(stderr).toBe('')
    const statuses = stdout.trim().split('\n')
    const passed = all.filter((_, at) => statuses[at] === 'HTTP/1.1 200').map(({ name }) => name)
    expect(passed).toEqual(all.filter(({ door }) => door === 'cleans').map(({ name }) => name))
    const { requests } = await upstream.seen()
    expect(requests).toHaveLength(passed.length)
    const account = `default/${box.data.agent}`
    const heads = new Set(requests.map(({ head }) => names(head)))
    expect(heads.size).toBe(1)
    for (const { head, body } of requests) {
      expect(head + body).not.toContain(MARK)
      expect(head).toContain(`x-litellm-end-user-id: ${account}\r\n`)
      expect(JSON.parse(body)).toEqual({ user: account, ...BODY, max_tokens: 1000 })
    }
    expect(SPOOFS.length).toBeGreaterThanOrEqual(60)
  })
})

/** Line and names of a head, in their order. */
function names(head: string): string {
  return head
    .split('\r\n')
    .map((line, at) => (at === 0 ? line : line.split(':')[0]))
    .join('\n')
}
