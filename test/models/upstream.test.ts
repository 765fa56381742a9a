import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answerOf, chunkOf, ModelUpstream, STREAM_END, STREAM_HEAD } from '../support/model-upstream.ts'
import { requires } from '../support/requires.ts'
import { askInside, bundleClients, CANARY, startModelServer } from './support.ts'

let upstream: ModelUpstream
let server: Awaited<ReturnType<typeof startModelServer>>
let box: Sandbox

beforeAll(async () => {
  upstream = await ModelUpstream.start()
  server = await startModelServer(upstream.port)
  box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({ doors: ['llm'] })
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
    expect(
      head
        .map((line) => line.split(':')[0]?.toLowerCase())
        .slice(1)
        .toSorted(),
    ).toEqual([
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
    ])
    expect(head).toContain(`authorization: Bearer ${CANARY}`)
    expect(head).toContain(`x-litellm-end-user-id: default/${agent}`)
  })

  it('a stream passes, less the chunk with usage that the client did not ask for', async () => {
    const usage = event({ choices: [], usage: USAGE })
    await upstream.next(STREAM_HEAD, delta('Hel'), delta('lo.'), usage, chunkOf('data: [DONE]\n\n'), STREAM_END)
    expect(await askInside(box, ['chatStream'], 'gpt')).toEqual([['Hel', 'lo.']])
    expect((await lastSeen()).body).toMatchObject({ stream: true, stream_options: { include_usage: true } })
  })
})
