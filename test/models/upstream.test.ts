import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answerOf, chunkOf, ModelUpstream, STREAM_END, STREAM_HEAD } from '../support/model-upstream.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { askInside, bundleClients, CANARY, startModelServer } from './support.ts'

let upstream: ModelUpstream
let server: Awaited<ReturnType<typeof startModelServer>>
let box: Sandbox

beforeAll(async () => {
  upstream = await ModelUpstream.start()
  server = await startModelServer(upstream.port)
  box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({
    models: ['small', 'gpt'],
  })
  await box.files.write('clients.mjs', await bundleClients())
}, 240_000)
afterAll(async () => {
  await server?.stop()
  server?.clean()
  await upstream?.stop()
})

const JSON_TYPE = ['content-type: application/json']
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const chatAnswer = (message: object) =>
  answerOf(
    '200 OK',
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: USAGE,
    }),
    [...JSON_TYPE, 'x-provider-account: acc-9', 'set-cookie: a=b'],
  )
const event = (data: object) => chunkOf(`data: ${JSON.stringify(data)}\n\n`)
const delta = (content: string) => event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
const lastSeen = async () => {
  const { requests } = await upstream.seen()
  const { head = '', body = '' } = requests.at(-1) ?? {}
  return { head: head.trim().split('\r\n'), body: JSON.parse(body) as Record<string, unknown> }
}

describe('with an upstream', requires('root'), () => {
  it('a chat goes there with our identity and our key, and its answer comes back', async () => {
    await upstream.next(chatAnswer({ role: 'assistant', content: 'Hello.' }))
    expect(await askInside(box, ['chat'], 'small')).toEqual([{ role: 'assistant', content: 'Hello.' }])
    const { head, body } = await lastSeen()
    const { agent } = box.data
    expect(body).toEqual({
      user: `default/${agent}`,
      model: 'small',
      messages: [{ role: 'user', content: 'Say hello.' }],
      max_tokens: 1000,
    })
    expect(head[0]).toBe('POST /v1/chat/completions HTTP/1.1')
    const names = head.slice(1).map((line) => line.split(':')[0]?.toLowerCase())
    expect(new Set(names)).toEqual(
      new Set([
        'accept',
        'accept-encoding',
        'authorization',
        'connection',
        'content-length',
        'content-type',
        'host',
        'user-agent',
        'x-litellm-end-user-id',
        'x-litellm-spend-logs-metadata',
      ]),
    )
    expect(head).toContain(`authorization: Bearer ${CANARY}`)
    expect(head).toContain(`x-litellm-end-user-id: default/${agent}`)
  })

  it('a stream passes, less the chunk with usage that the client did not ask for', async () => {
    const usage = event({ choices: [], usage: USAGE })
    await upstream.next(STREAM_HEAD, delta('Hel'), delta('lo.'), usage, chunkOf('data: [DONE]\n\n'), STREAM_END)
    expect(await askInside(box, ['chatStream'], 'gpt')).toEqual([['Hel', 'lo.']])
    expect((await lastSeen()).body).toMatchObject({ stream: true, stream_options: { include_usage: true } })
  })

  it('a stream that ends with its connection is whole with its last event, and broken without', async () => {
    const head = { send: 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n' }
    const hello = { send: 'data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}\n\n' }
    await upstream.next(head, hello, { send: 'data: [DONE]\n\n' }, { end: 'close' })
    expect(await askInside(box, ['chatStream'], 'gpt')).toEqual([['Hello.']])
    await upstream.next(head, hello, { end: 'close' })
    expect(await askInside(box, ['chatStream'], 'gpt')).toMatchObject([{ error: 'APIError' }])
  })

  it('tools and images as data URLs pass, and calls of tools come back', async () => {
    const call = { id: 't1', type: 'function', function: { name: 'add', arguments: '{}' } }
    await upstream.next(chatAnswer({ role: 'assistant', content: null, tool_calls: [call] }))
    expect(await askInside(box, ['chatTools'], 'small')).toEqual([[call]])
    const { body } = await lastSeen()
    expect(JSON.stringify(body)).toContain('data:image/png;base64,')
    expect(body['tools']).toHaveLength(1)
  })

  it('responses, embeddings, messages and counts have their routes', async () => {
    const answer = (body: object) => answerOf('200 OK', JSON.stringify(body), JSON_TYPE)
    const message = { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] }
    await upstream.next(
      answer({
        id: 'r',
        object: 'response',
        output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hello.' }] }],
      }),
    )
    await upstream.next(
      answer({
        object: 'list',
        data: [{ index: 0, embedding: [0.5, 1] }],
        usage: { prompt_tokens: 1, total_tokens: 1 },
      }),
    )
    await upstream.next(answer({ ...message, usage: { input_tokens: 1, output_tokens: 1 } }))
    await upstream.next(answer({ input_tokens: 42 }))
    const before = (await upstream.seen()).requests.length
    const answers = await askInside(box, ['responses', 'embeddings', 'messages', 'countTokens', 'models'], 'small')
    expect(answers).toEqual(['Hello.', 2, message.content, 42, ['small', 'gpt']])
    const { requests } = await upstream.seen()
    expect(requests.slice(before).map(({ head }) => head.split(' ')[1])).toEqual([
      '/v1/responses',
      '/v1/embeddings',
      '/v1/messages',
      '/v1/messages/count_tokens',
    ])
    expect(requests.at(-1)?.head.toLowerCase()).toMatch(/anthropic-version: 20\d\d-\d\d-\d\d/)
  })

  it('a model that the sandbox was made without, or a route that the provider lacks, is refused', async () => {
    expect(await askInside(box, ['chat'], 'airlock/demo')).toMatchObject([{ status: 404, code: 'model_not_found' }])
    expect(await askInside(box, ['messages'], 'gpt')).toMatchObject([{ status: 400 }])
  })

  it('the key is nowhere inside, nor in evidence or logs', async () => {
    const shell =
      'env; cat /proc/self/environ /proc/*/cmdline /run/airlock/token 2>/dev/null; find / -xdev -type f -size -64k -newer /etc/hostname -readable 2>/dev/null | head -2000 | xargs -r cat 2>/dev/null'
    const { stdout } = await box.run({ shell })
    expect(stdout).toContain('placeholder-the-server-holds-the-key')
    const events = JSON.stringify((await client('admin').audit.events({ limit: 100 })).items)
    expect(events).toContain('model.call')
    for (const text of [stdout, events, server.logs()]) expect(text).not.toContain(CANARY)
  })
})

describe('an end of a call', requires('root'), () => {
  /** Ends of calls in the evidence, the latest first. */
  const ends = async () => {
    const { items } = await client('admin').audit.events({ point: 'model.call', limit: 100 })
    const found = items.filter(({ status }) => status !== 'requested')
    return found.map(({ status, payload, error }) => ({
      status,
      call: payload['call'],
      usage: payload['usage'],
      error: payload['error'] ?? error?.code,
    }))
  }
  const untilEnds = async (count: number) =>
    waitFor(
      async () => {
        const all = await ends()
        return all.length >= count ? all : undefined
      },
      { signal: deadline(60_000), everyMs: 50 },
    )
  const NONE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

  it.each<readonly [string, string, () => Promise<unknown>, object, object]>([
    [
      'of a provider that fails',
      'chat',
      async () => upstream.next(answerOf('500 Internal Server Error', '{"error":{"message":"sk-x"}}', JSON_TYPE)),
      { status: 503 },
      { status: 'failed', usage: NONE },
    ],
    [
      'of a provider whose error breaks off',
      'chat',
      async () =>
        upstream.next({ send: 'HTTP/1.1 500 x\r\ncontent-length: 99\r\n\r\n{"err' }, { wait: 'cut' }, { end: 'reset' }),
      { status: 503, message: expect.stringContaining('charged at its ceiling') },
      { status: 'unknown', usage: 'unreported', error: 'upstream_failed' },
    ],
    [
      'of a request that the provider rejects',
      'chat',
      async () => upstream.next(answerOf('400 Bad Request', '{"error":{"message":"no"}}', JSON_TYPE)),
      { status: 400, message: expect.stringContaining('no') },
      { status: 'failed', usage: NONE },
    ],
    [
      'of a stream that is reset in the middle',
      'chatStream',
      async () => upstream.next(STREAM_HEAD, delta('Hel'), { wait: 'never' }, { end: 'reset' }),
      { error: 'APIError' },
      { status: 'unknown', usage: 'unreported', error: 'upstream_broken' },
    ],
    [
      'of a client that leaves',
      'leave',
      async () => upstream.next(STREAM_HEAD, delta('Hel'), { every: 20, again: 'f\r\ndata: {"a":1}\n\n\r\n' }),
      {},
      { status: 'unknown', usage: 'unreported', error: 'timeout' },
    ],
  ])('%s is one fact', async (name, ask, script, seen, end) => {
    const before = (await ends()).length
    await script()
    if (/reset|breaks off/.test(name)) setTimeout(() => upstream.say(name.includes('reset') ? 'never' : 'cut'), 200)
    const [answer] = await askInside(box, [ask], 'small')
    if (ask === 'leave') expect(answer).toBe('left')
    else expect(answer).toMatchObject(seen)
    const all = await untilEnds(before + 1)
    expect(all).toHaveLength(before + 1)
    expect(all[0]).toMatchObject(end)
  })

  it('of a stream whose model a new rule denies is cut, as the provider sees it', async () => {
    const before = (await ends()).length
    const open = async () => (await upstream.seen()).connections.filter(({ isOpen }) => isOpen).length
    const idle = await open()
    const earlier = (await upstream.seen()).requests.length
    await upstream.next(STREAM_HEAD, { every: 20, again: delta('Hel').send })
    const asked = askInside(box, ['chatStream'], 'small')
    await waitFor(async () => ((await upstream.seen()).requests.length > earlier ? true : undefined), {
      signal: deadline(60_000),
      everyMs: 20,
    })
    const deny = { id: 'no', kind: 'model', effect: 'deny', risk: 'high', reason: 'Not any more.' } as const
    await client('admin').policies.put({ name: 'no-small', rules: [{ ...deny, match: { models: ['small'] } }] })
    try {
      expect(JSON.stringify(await asked)).toContain('The rules changed')
      const all = await untilEnds(before + 1)
      expect(all[0]).toMatchObject({ status: 'unknown', usage: 'unreported', error: 'policy_denied' })
      await waitFor(async () => ((await open()) <= idle ? true : undefined), { signal: deadline(30_000), everyMs: 20 })
      expect(await askInside(box, ['chat'], 'small')).toMatchObject([{ status: 403 }])
    } finally {
      await client('admin').policies.remove('no-small')
    }
  })

  it('of a stream whose doors are killed is one estimated fact, and later calls pass', async () => {
    const before = (await ends()).length
    const earlier = (await upstream.seen()).requests.length
    await upstream.next(STREAM_HEAD, delta('Hel'), { every: 20, again: 'f\r\ndata: {"a":1}\n\n\r\n' })
    const asked = askInside(box, ['chatStream'], 'small')
    await waitFor(async () => ((await upstream.seen()).requests.length > earlier ? true : undefined), {
      signal: deadline(60_000),
      everyMs: 20,
    })
    await waitFor(async () => ((await upstream.seen()).connections.some(({ isOpen }) => isOpen) ? true : undefined), {
      signal: deadline(60_000),
      everyMs: 20,
    })
    const doors = pidOf(server.home, 'doors')
    if (doors === undefined) throw new TypeError('no doors process')
    process.kill(doors, 'SIGKILL')
    expect(await asked).toMatchObject([{ error: expect.any(String) }])
    const all = await untilEnds(before + 1)
    expect(all).toHaveLength(before + 1)
    expect(all[0]).toMatchObject({ status: 'unknown', usage: 'unreported', error: 'door_unavailable' })
    await waitFor(
      async () => {
        await upstream.next(chatAnswer({ role: 'assistant', content: 'Again.' }))
        const [answer] = await askInside(box, ['chat'], 'small')
        return (answer as { content?: string }).content === 'Again.' ? true : undefined
      },
      { signal: deadline(60_000), everyMs: 200 },
    )
  })
})

function client(of: 'admin' | 'developer' = 'developer'): Airlock {
  return new Airlock({ url: server.url, apiKey: of === 'admin' ? server.adminKey : server.developerKey })
}
