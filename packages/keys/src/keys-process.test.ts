import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type Reservation, signReservation } from '@airlock/contract'
import { deadline, newId, sleep, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  answerOf,
  chunkOf,
  ModelUpstream,
  STREAM_END,
  STREAM_HEAD,
  type UpstreamStep,
} from '../../../test/support/model-upstream.ts'
import { KeysProcess, readCalled } from './testing/keys-process.ts'
import { aReservation, signingKeys } from './testing/reservations.ts'

const KEY = 'sk-canary-0123456789abcdef'
const CHAT = { model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }], max_tokens: 100 }

let upstream: ModelUpstream
let keys: KeysProcess

beforeAll(async () => {
  upstream = await ModelUpstream.start()
  const { port } = upstream
  keys = new KeysProcess({
    main: { port },
    claude: { port, kind: 'anthropic', path: '' },
    proxy: { port, kind: 'litellm', path: '/base/v1' },
    local: { port, kind: 'compatible', path: '/api', keyFile: null },
    hasty: { port, connectMs: 1_500, firstByteMs: 1, readMs: 1, maxConcurrent: 1 },
    secretless: { port },
  })
  for (const name of ['main', 'claude', 'proxy', 'hasty']) keys.writeKey(name, KEY)
  await keys.start()
})
afterAll(async () => {
  await keys?.[Symbol.asyncDispose]()
  await upstream?.stop()
})

describe('what an upstream gets', () => {
  it('is the path of the route, our headers, one length, and the body as it was reserved', async () => {
    const { status, end } = await keys.call(CHAT)
    expect({ status, end }).toEqual({ status: 200, end: 'whole' })
    const { head, body } = await lastRequest()
    const sent = JSON.stringify({ store: false, ...CHAT })
    expect(head).toBe(
      [
        'POST /v1/chat/completions HTTP/1.1',
        `host: 127.0.0.1:${upstream.port}`,
        'connection: keep-alive',
        'content-type: application/json',
        'accept: application/json, text/event-stream',
        'accept-encoding: identity',
        'user-agent: airlock',
        `authorization: Bearer ${KEY}`,
        `content-length: ${sent.length}`,
        '\r\n',
      ].join('\r\n'),
    )
    expect(body).toBe(sent)
  })

  it.each([
    ['claude', 'messages', { max_tokens: 1 }, '/v1/messages', ['x-api-key', 'anthropic-version'], {}],
    ['claude', 'count_tokens', {}, '/v1/messages/count_tokens', ['x-api-key', 'anthropic-version'], {}],
    ['main', 'embeddings', { input: 'x' }, '/v1/embeddings', ['authorization'], {}],
    ['main', 'responses', { max_output_tokens: 1 }, '/v1/responses', ['authorization'], { store: false }],
    ['local', 'chat', { max_tokens: 1 }, '/api/chat/completions', [], {}],
    [
      'proxy',
      'messages',
      { max_tokens: 1 },
      '/base/v1/messages',
      ['authorization', 'anthropic-version', 'x-litellm-end-user-id', 'x-litellm-spend-logs-metadata'],
      { metadata: { user_id: 'default/alice' } },
    ],
  ] as const)('of kind %s for %s is as its API has it', async (name, route, fields, path, own, added) => {
    await keys.call({ model: 'gpt-5', ...fields }, { upstream: name, route })
    const { head, body } = await lastRequest()
    const common = ['host', 'connection', 'content-type', 'accept', 'accept-encoding', 'user-agent', 'content-length']
    expect(head.split('\r\n')[0]).toBe(`POST ${path} HTTP/1.1`)
    expect(headerNames(head)).toEqual([...common, ...own].toSorted())
    expect(JSON.parse(body)).toEqual({ model: 'gpt-5', ...fields, ...added })
  })

  it('names the payer to LiteLLM from the reservation alone, with our id of the call', async () => {
    const callId = newId('cal')
    await keys.call(CHAT, { upstream: 'proxy', callId, account: 'acme/bob' })
    const { head, body } = await lastRequest()
    expect(headerOf(head, 'x-litellm-end-user-id')).toBe('acme/bob')
    expect(JSON.parse(headerOf(head, 'x-litellm-spend-logs-metadata'))).toEqual({
      run_id: 'sbx_0000000000aaaaaaaaaaaaaaaa',
      attempt: 0,
      graph_id: 'base',
      user_id: 'default/alice',
      existing_trace_id: 'trace-1',
      session_id: null,
      trace_user_id: null,
      call_id: callId,
    })
    expect(JSON.parse(body)).toEqual({ user: 'acme/bob', ...CHAT })
  })

  it('is asked with the key that the file holds then', async () => {
    keys.writeKey('main', 'sk-another-0123456789abcdef')
    await keys.call(CHAT)
    expect(headerOf((await lastRequest()).head, 'authorization')).toBe('Bearer sk-another-0123456789abcdef')
    keys.writeKey('main', KEY)
    await keys.call(CHAT)
    expect(headerOf((await lastRequest()).head, 'authorization')).toBe(`Bearer ${KEY}`)
  })
})

describe('a call is refused, and nothing is sent', () => {
  const refused = async (what: Partial<Reservation> | string, body: object = CHAT) => {
    const before = (await upstream.seen()).requests.length
    const { status, body: text } = await keys.call(body, what)
    expect((await upstream.seen()).requests).toHaveLength(before)
    const { error } = JSON.parse(text) as { error: { code: string; message: string } }
    return `${status} ${error.code}: ${error.message}`
  }

  it('with a reservation that was used before, also by a call that failed', async () => {
    const used = keys.sign()
    await keys.call(CHAT, used)
    expect(await refused(used)).toBe('500 reservation_rejected: The reservation was used before.')
    const failed = keys.sign()
    expect(await refused(failed, { ...CHAT, model: 'other' })).toContain('the model')
    expect(await refused(failed)).toContain('was used before')
  })

  it('with a reservation that is forged, expired, or for another node or life', async () => {
    const { privateKey } = signingKeys()
    const forged = signReservation(aReservation({ life: keys.life }), privateKey)
    expect(await refused(forged)).toContain('is not signed by our control plane')
    expect(await refused(forged.slice(0, -1))).toContain('is malformed')
    expect(await refused({ expiresAt: Date.now() - 1000 })).toContain('has expired')
    expect(await refused({ expiresAt: Date.now() + 120_000 })).toContain('is good for too long')
    expect(await refused({ node: 'elsewhere' })).toContain('is for another node')
    expect(await refused({ life: 'b'.repeat(26) })).toContain('is for an earlier life')
  })

  it.each([
    ['an upstream that is not configured', { upstream: 'other' }, 'There is no upstream other.'],
    ['a route that the upstream does not have', { route: 'messages' }, 'Upstream main has no route messages.'],
    ['a model that is not listed', { model: 'gpt-6' }, 'Upstream main does not list the model.'],
  ] as const)('with a reservation for %s', async (_what, changes, message) => {
    expect(await refused(changes, { ...CHAT, ...changes })).toBe(`500 reservation_rejected: ${message}`)
  })

  it('with a body that asks for more than was reserved', async () => {
    expect(await refused({ maxOutputTokens: 99 })).toContain('how many tokens may be written')
    expect(await refused({ model: 'gpt-5' }, { ...CHAT, model: 'gpt-5-pro' })).toContain('the model')
  })

  it('with a body that is not JSON, and the refusal is heard before the body is over', async () => {
    const outgoing = request({
      socketPath: keys.socket,
      agent: false,
      method: 'POST',
      path: '/call',
      headers: { 'content-type': 'application/json', 'content-length': '3000000', 'airlock-reservation': keys.sign() },
    })
    outgoing.write(`{"model":"gpt-5","model":"gpt-5","input":"${'x'.repeat(1_000_000)}`)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const { status, body } = await readCalled(response)
    expect([status, JSON.parse(body)]).toMatchObject([400, { error: { message: 'The body names model twice.' } }])
    outgoing.destroy()
  })

  it('to an upstream whose key is not there', async () => {
    expect(await refused({ upstream: 'secretless' })).toBe(
      '503 key_unavailable: The key of upstream secretless is absent.',
    )
    keys.writeKey('secretless', 'short')
    expect(await refused({ upstream: 'secretless' })).toContain('is malformed')
  })

  it.each([
    ['a header that is not of a call', { authorization: 'Bearer x' }, 400],
    ['a header that LiteLLM reads', { 'x-litellm-tags': 'x' }, 400],
    ['another content type', { 'content-type': 'text/plain' }, 415],
    ['a body that is compressed', { 'content-encoding': 'gzip' }, 400],
    ['a body that is too long', { 'content-length': '33554433' }, 413],
  ])('with %s', async (_what, headers, status) => {
    const before = (await upstream.seen()).requests.length
    const response = await keys.open(CHAT, {}, headers)
    expect((await readCalled(response)).status).toBe(status)
    expect((await upstream.seen()).requests).toHaveLength(before)
  })

  it('in chunks, or by another route', async () => {
    for (const [method, path] of [
      ['POST', '/call'],
      ['GET', '/call'],
      ['POST', '/health'],
      ['POST', '/call?x'],
    ]) {
      const outgoing = request({ socketPath: keys.socket, agent: false, method, path }).end()
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
      expect((await readCalled(response)).status).toBeGreaterThanOrEqual(400)
    }
  })
})

describe('what comes back', () => {
  it('is a stream that comes as it is sent, byte by byte', async () => {
    const events = ['data: {"a":1}\n\n', 'data: {"b":"ä"}\r\n\r\n', 'data: [DONE]\n\n']
    const [first = '', second = '', third = ''] = events
    await upstream.next(
      STREAM_HEAD,
      { wait: 'first' },
      chunkOf(first),
      { wait: 'rest' },
      chunkOf(second),
      chunkOf(third),
      STREAM_END,
    )
    // The head comes before the first event, and the first event before the second is sent.
    const response = await keys.open(CHAT)
    expect(response.headers['content-type']).toBe('text/event-stream')
    upstream.say('first')
    const [chunk] = (await once(response, 'data')) as [Buffer]
    response.pause()
    upstream.say('rest')
    const { body, end } = await readCalled(response)
    expect(Buffer.concat([chunk, Buffer.from(body, 'latin1')]).toString()).toBe(events.join(''))
    expect(end).toBe('whole')
  })

  it('has headers of a list alone', async () => {
    await upstream.next(
      answerOf('200 Fine', '{}', [
        'content-type: application/json',
        'x-request-id: req-1',
        'retry-after: 7',
        'set-cookie: a=b',
        'x-internal: host-7',
        'airlock-upstream-status: 999',
        'airlock-end: whole',
        `x-litellm-call-id: ${'x'.repeat(300)}`,
        'request-id: a',
        'request-id: b',
      ]),
    )
    const { headers } = await keys.call(CHAT)
    const { date: _date, connection: _connection, ...rest } = headers
    expect(rest).toEqual({
      'content-type': 'application/json',
      'x-request-id': 'req-1',
      'retry-after': '7',
      'airlock-upstream-status': '200',
      'transfer-encoding': 'chunked',
      trailer: 'airlock-end',
    })
  })

  it('is an error of the upstream with its status and a bounded body', async () => {
    await upstream.next(answerOf('429 Slow down', JSON.stringify({ error: 'x' }), ['retry-after: 3']))
    expect(await keys.call(CHAT)).toMatchObject({
      status: 200,
      headers: { 'airlock-upstream-status': '429', 'retry-after': '3' },
      body: '{"error":"x"}',
      end: 'whole',
    })
    await upstream.next(answerOf('500 Oh', 'x'.repeat(200_000)))
    const { body, end } = await keys.call(CHAT)
    expect({ length: body.length, end }).toEqual({ length: 65_536, end: 'whole' })
  })

  it('that is a stream without a stated end is passed on, and never called whole', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n'
    await upstream.next({ send: `${head}data: [DONE]\n\n` }, { end: 'close' })
    expect(await keys.call(CHAT)).toMatchObject({ status: 200, body: 'data: [DONE]\n\n', end: 'upstream_broken' })
  })

  it.each<[string, UpstreamStep, string]>([
    ['a redirect', answerOf('307 Over there', '', ['location: http://127.0.0.1:1/']), 'redirect (307)'],
    ['an encoding', answerOf('200 OK', 'x', ['content-encoding: gzip']), 'encoding that was not asked for'],
    ['no end', { send: 'HTTP/1.1 200 OK\r\n\r\nx' }, 'where its answer ends'],
    [
      'a length and chunks',
      { send: 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n' },
      '',
    ],
    ['two lengths', { send: 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx' }, ''],
    ['a head above the bound', { send: `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n` }, ''],
    ['another protocol', { send: 'SSH-2.0-OpenSSH_9\r\n' }, ''],
    ['another protocol over this one', { send: 'HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n' }, ''],
  ])('is upstream_broken for %s', async (_what, step, why) => {
    await upstream.next(step, { end: 'close' })
    const { status, body } = await keys.call(CHAT)
    expect(status).toBe(502)
    expect(JSON.parse(body)).toMatchObject({
      error: { code: 'upstream_broken', message: expect.stringContaining(why) },
    })
  })

  it.each<[string, readonly UpstreamStep[], string]>([
    [
      'a stream that is reset',
      [STREAM_HEAD, chunkOf('data: 1\n\n'), { wait: 'heard' }, { end: 'reset' }],
      'data: 1\n\n',
    ],
    ['a stream that ends without its end', [STREAM_HEAD, chunkOf('data: 1\n\n'), { end: 'close' }], 'data: 1\n\n'],
    [
      'a length that is not kept',
      [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a":' }, { end: 'close' }],
      '{"a":',
    ],
    ['a chunk that is none', [STREAM_HEAD, { send: '5\r\n{"a":XX\r\n' }], '{"a":'],
  ])('says at its end that it broke off: %s', async (_what, steps, text) => {
    await upstream.next(...steps)
    const response = await keys.open(CHAT)
    response.once('data', () => upstream.say('heard'))
    const { body, end } = await readCalled(response)
    expect({ body, end }).toEqual({ body: text, end: 'upstream_broken' })
  })

  it('is upstream_timeout for an upstream that is silent, before its answer and in it', async () => {
    await upstream.next({ wait: 'never' })
    const { status, body } = await keys.call(CHAT, { upstream: 'hasty' })
    expect([status, JSON.parse(body)]).toMatchObject([504, { error: { code: 'upstream_timeout' } }])
    await upstream.next(STREAM_HEAD, chunkOf('data: 1\n\n'), { wait: 'never' })
    expect(await keys.call(CHAT, { upstream: 'hasty' })).toMatchObject({ body: 'data: 1\n\n', end: 'upstream_timeout' })
  })

  it('is upstream_timeout for an upstream that says for ever that it is at work', async () => {
    await upstream.next({ every: 100, again: 'HTTP/1.1 102 Processing\r\n\r\n' })
    const { status, body } = await keys.call(CHAT, { upstream: 'hasty' })
    expect([status, JSON.parse(body)]).toMatchObject([504, { error: { code: 'upstream_timeout' } }])
  })

  it('leaves the trailers and extensions of the upstream behind', async () => {
    await upstream.next(STREAM_HEAD, { send: `2;x=${KEY}\r\nab\r\n0\r\nairlock-end: whole\r\nx-key: ${KEY}\r\n\r\n` })
    const response = await keys.open(CHAT)
    const { body, end } = await readCalled(response)
    expect({ body, end, trailers: response.rawTrailers }).toEqual({
      body: 'ab',
      end: 'whole',
      trailers: ['airlock-end', 'whole'],
    })
  })
})

describe('an upstream that sends the key back', () => {
  const basic = Buffer.from(`user:${KEY}`).toString('base64')

  it.each<[string, readonly UpstreamStep[]]>([
    ['in a header', [answerOf('200 OK', '{}', [`x-request-id: ${KEY}`])]],
    ['in a header, encoded', [answerOf('200 OK', '{}', [`request-id: ${basic}`])]],
  ])('%s has no answer', async (_where, steps) => {
    await upstream.next(...steps)
    const { status, body } = await keys.call(CHAT)
    expect([status, JSON.parse(body)]).toMatchObject([502, { error: { code: 'upstream_leaked_key' } }])
  })

  it.each<[string, readonly UpstreamStep[], string]>([
    ['in a body', [answerOf('200 OK', `{"a":"${KEY}"}`)], ''],
    ['in an error', [answerOf('401 No', `{"error":"bad key ${KEY}"}`)], ''],
    ['in base64', [answerOf('200 OK', `a ${basic}`)], ''],
    [
      'in a stream, over two events',
      [
        STREAM_HEAD,
        chunkOf('data: 1\n\n'),
        { wait: 'one' },
        chunkOf(`data: ${KEY.slice(0, 9)}`),
        { wait: 'two' },
        chunkOf(KEY.slice(9)),
        STREAM_END,
      ],
      'data: 1\n\ndata: ',
    ],
  ])('%s is cut before it', async (_where, steps, passed) => {
    await upstream.next(...steps)
    const response = await keys.open(CHAT)
    for (const word of ['one', 'two']) upstream.say(word)
    const { body, end } = await readCalled(response)
    expect(passed.startsWith(body) || body === passed).toBe(true)
    expect(end).toBe('upstream_leaked_key')
    expect(body).not.toContain(KEY.slice(0, 9))
  })

  it('in a status line, a redirect or a trailer shows it to nobody', async () => {
    await upstream.next(answerOf(`200 ${KEY}`, '{}'))
    const fine = await keys.call(CHAT)
    await upstream.next(answerOf('302 Found', '', [`location: https://x/?${KEY}`]))
    const redirected = await keys.call(CHAT)
    expect(JSON.stringify([fine, redirected])).not.toContain(KEY)
  })
})

describe('connections upstream', () => {
  it('are used again by the same tenant, and never by another', async () => {
    for (const tenant of ['one', 'one', 'two', 'one', 'two', 'three'])
      await keys.call(CHAT, { tenant, account: tenant, upstream: 'proxy' })
    const { requests } = await upstream.seen()
    const last = requests.slice(-6)
    const payers = last.map(({ connection, head }) => [headerOf(head, 'x-litellm-end-user-id'), connection] as const)
    const byTenant = Map.groupBy(payers, ([payer]) => payer)
    for (const [, uses] of byTenant) expect(new Set(uses.map(([, connection]) => connection)).size).toBe(1)
    expect(new Set(payers.map(([, connection]) => connection)).size).toBe(3)
  })

  it.each<[string, readonly UpstreamStep[]]>([
    [
      'bytes came behind it',
      [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhidden' }],
    ],
    ['a byte came behind it', [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}x' }]],
    [
      'a byte came behind its chunks',
      [{ send: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nx' }],
    ],
    ['it was not read to its end', [answerOf('500 Oh', 'x'.repeat(200_000))]],
    ['it was refused', [answerOf('302 Found', 'x'.repeat(200_000), ['location: /'])]],
    ['it said so', [answerOf('200 OK', '{}', ['connection: close'])]],
    ['it held the key', [answerOf('200 OK', KEY + 'x'.repeat(200_000))]],
  ])('are not used again after an answer when %s', async (_why, steps) => {
    await upstream.next(...steps)
    await keys.call(CHAT, { tenant: 'surplus' })
    const { requests } = await upstream.seen()
    const { connection } = requests.at(-1) ?? {}
    const next = await keys.call(CHAT, { tenant: 'surplus' })
    expect(next.body).toBe('{"id":"1","choices":[]}')
    expect((await lastRequest()).connection).not.toBe(connection)
  })

  it('end with their caller', async () => {
    await upstream.next(STREAM_HEAD, chunkOf('data: 1\n\n'), { wait: 'never' })
    const response = await keys.open(CHAT)
    await once(response, 'data')
    const { connection } = await lastRequest()
    response.destroy()
    await gone(connection)
    expect((await keys.health()).upstreams.map(({ calls }) => calls)).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('are at most as many as are allowed: one call more is refused at once', async () => {
    await upstream.next(STREAM_HEAD, { wait: 'over' }, STREAM_END)
    const response = await keys.open(CHAT, { upstream: 'hasty' })
    const { status, body } = await keys.call(CHAT, { upstream: 'hasty' })
    expect([status, JSON.parse(body)]).toMatchObject([429, { error: { code: 'upstream_busy' } }])
    upstream.say('over')
    await readCalled(response)
  })

  it('of one sandbox leave some to its neighbours', async () => {
    const held = async (sandbox: string) => {
      await upstream.next(STREAM_HEAD, chunkOf('data: 1\n\n'), { wait: 'never' })
      return keys.open(CHAT, { upstream: 'local', sandbox })
    }
    const [greedy, neighbour] = ['sbx_0000000000aaaaaaaaaaaaaaaa', 'sbx_0000000000bbbbbbbbbbbbbbbb']
    const open = [await held(greedy), await held(greedy)]
    const { status, body } = await keys.call(CHAT, { upstream: 'local', sandbox: greedy })
    expect([status, JSON.parse(body)]).toMatchObject([429, { error: { code: 'upstream_busy' } }])
    open.push(await held(neighbour))
    expect(open.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200])
    for (const response of open) response.destroy()
  })

  it('hold an upstream back while nobody reads, and lose nothing', async () => {
    const total = 96 * 1024 * 1024
    await upstream.next(STREAM_HEAD, { flood: total }, STREAM_END)
    const response = await keys.open(CHAT)
    response.pause()
    const { connection } = await lastRequest()
    const stopped = await waitFor(
      async () => {
        const before = await takenBy(connection)
        await sleep(200)
        return before > 0 && (await takenBy(connection)) === before ? before : undefined
      },
      { signal: deadline(100_000), everyMs: 10 },
    )
    // Sockets of the kernel hold some megabytes; our buffers hold little.
    expect(stopped).toBeLessThan(32 * 1024 * 1024)
    let read = 0
    for await (const chunk of response) read += (chunk as Buffer).length
    expect({ read, end: response.trailers['airlock-end'] }).toEqual({ read: total, end: 'whole' })
  })
})

async function takenBy(id: number): Promise<number> {
  return (await upstream.seen()).connections[id]?.taken ?? 0
}

async function gone(id: number): Promise<void> {
  const isGone = async () => ((await upstream.seen()).connections[id]?.isOpen === false ? true : undefined)
  await waitFor(isGone, { signal: deadline(100_000), everyMs: 20 })
}

async function lastRequest() {
  const last = (await upstream.seen()).requests.at(-1)
  if (last === undefined) throw new TypeError('the upstream got nothing')
  return last
}

function headerNames(head: string): readonly string[] {
  const lines = head.trimEnd().split('\r\n').slice(1)
  return lines.map((line) => line.split(':')[0] ?? '').toSorted()
}

function headerOf(head: string, name: string): string {
  return new RegExp(String.raw`^${name}: (.*)\r$`, 'm').exec(head)?.[1] ?? ''
}
