import { describe, expect, it } from 'vitest'
import type { CallName } from '../routes/find-route.ts'
import { captureAnthropic, captureOpenAI } from '../testing/capture.ts'
import { TERMS } from '../testing/terms.ts'
import { readCall } from './read-call.ts'
import { readHeaders } from './read-headers.ts'
import { type CallIdentity, writeCall } from './write-call.ts'

const IDENTITY: CallIdentity = {
  upstreamKind: 'compatible',
  account: 'acc_1',
  headers: { 'x-litellm-end-user-id': 'acc_1' },
}
const messages = [{ role: 'user', content: 'hi' }]

function write(name: CallName, body: object, upstreamKind: CallIdentity['upstreamKind'] = 'compatible') {
  const call = readCall(name, Buffer.from(JSON.stringify({ model: 'alias', ...body })))
  const headers = readHeaders({ 'content-type': 'application/json' }, name === 'chat' ? 'openai' : 'anthropic')
  const written = writeCall({ call, headers }, { terms: TERMS, identity: { ...IDENTITY, upstreamKind } })
  return { ...written, body: JSON.parse(written.body) as unknown }
}

describe('what goes upstream', () => {
  it('names the model of the upstream, and who asks as the server knows it', () => {
    expect(write('chat', { messages, user: 'other', metadata: { tenant: 'other' }, store: true }).body).toEqual({
      model: 'vendor/model-1',
      messages,
      user: 'acc_1',
    })
  })

  it.each<readonly [CallName, object, object]>([
    [
      'responses',
      { input: 'hi', store: true, background: true, user: 'x' },
      { store: false, background: false, user: 'acc_1' },
    ],
    ['embeddings', { input: 'hi', user: 'x' }, { user: 'acc_1' }],
    ['messages', { messages, metadata: { user_id: 'x' } }, { metadata: { user_id: 'acc_1' } }],
    ['countTokens', { messages }, {}],
  ])('of %s has the fields that no client decides', (name, body, ours) => {
    const {
      store: _,
      background: _1,
      user: _2,
      metadata: _3,
      ...theirs
    } = { store: 0, background: 0, user: 0, metadata: 0, ...body }
    expect(write(name, body).body).toEqual({ model: 'vendor/model-1', ...theirs, ...ours })
  })

  it('to OpenAI itself says who asks in its own fields, and that nothing is stored', () => {
    const theirs = { safety_identifier: 'x', prompt_cache_key: 'x' }
    const ours = { user: 'acc_1', safety_identifier: 'acc_1', prompt_cache_key: 'acc_1', store: false }
    expect(write('chat', { messages, ...theirs }, 'openai').body).toMatchObject(ours)
    expect(write('responses', { input: 'hi', ...theirs }, 'openai').body).toMatchObject(ours)
  })

  it.each([
    ['is silent about usage', undefined],
    ['wants usage', { include_usage: true }],
    ['wants none', { include_usage: false, include_obfuscation: false }],
  ])('asks for usage of a stream when the client %s', (_, stream_options) => {
    expect(write('chat', { messages, stream: true, stream_options }).body).toMatchObject({
      stream: true,
      stream_options: { ...stream_options, include_usage: true },
    })
  })

  it('asks for no usage where there is no stream', () => {
    expect(write('chat', { messages, stream: false }).body).not.toHaveProperty('stream_options')
    expect(write('responses', { input: 'hi', stream: true }).body).not.toHaveProperty('stream_options')
  })

  it.each<readonly [CallName, object, string]>([
    ['chat', { messages }, '/v1/chat/completions'],
    ['responses', { input: 'hi' }, '/v1/responses'],
    ['embeddings', { input: 'hi' }, '/v1/embeddings'],
    ['messages', { messages }, '/v1/messages'],
    ['countTokens', { messages }, '/v1/messages/count_tokens'],
  ])('of %s is sent to the path of its route', (name, body, path) => {
    expect(write(name, body).path).toBe(path)
  })
})

describe('headers that go upstream', () => {
  const SENT = {
    'content-type': 'application/json',
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'airlock',
    'x-litellm-end-user-id': 'acc_1',
  }
  /** Names and values that a client may set, none of which may arrive. */
  const SPOOFS = Object.fromEntries(
    [
      'authorization',
      'x-api-key',
      'api-key',
      'cookie',
      'openai-organization',
      'openai-project',
      'openai-beta',
      'idempotency-key',
      'traceparent',
      'baggage',
      'x-forwarded-for',
      'x-litellm-end-user-id',
      'x-litellm-customer-id',
      'x-litellm-tags',
      'x-litellm-api-key',
      'x-litellm-spend-logs-metadata',
      'X-LiteLLM-End-User-Id',
      'x_litellm_end_user_id',
      'anthropic-workspace-id',
      'x-stainless-retry-count',
      'helicone-auth',
      ...Array.from({ length: 100 }, (_, at) => `x-unknown-${at}`),
    ].map((name) => [name, 'spoofed']),
  )

  it('of an unmodified openai client with spoofed ones are a fixed list', async () => {
    const params = { model: 'm', messages: [{ role: 'user' as const, content: 'hi' }], stream: true as const }
    const { headers, body } = await captureOpenAI(async (client) =>
      client.chat.completions.create(params, { headers: SPOOFS }),
    )
    expect(JSON.stringify(headers)).toContain('spoofed')
    const call = readCall('chat', Buffer.from(body))
    const written = writeCall({ call, headers: readHeaders(headers, 'openai') }, { terms: TERMS, identity: IDENTITY })
    expect(written.headers).toEqual({ ...SENT, accept: 'text/event-stream' })
    expect(JSON.stringify(written)).not.toContain('spoofed')
  })

  it('of an unmodified anthropic client have betas of the list alone', async () => {
    const params = { model: 'm', max_tokens: 10, messages: [{ role: 'user' as const, content: 'hi' }] }
    const betas = ['context-1m-2025-08-07', 'interleaved-thinking-2025-05-14', 'mcp-client-2025-11-20']
    const { headers, body } = await captureAnthropic(async (client) =>
      client.beta.messages.create({ ...params, betas }, { headers: SPOOFS }),
    )
    const call = readCall('messages', Buffer.from(body))
    const written = writeCall(
      { call, headers: readHeaders(headers, 'anthropic') },
      { terms: TERMS, identity: IDENTITY },
    )
    expect(written.headers).toEqual({
      ...SENT,
      'anthropic-version': headers['anthropic-version'],
      'anthropic-beta': 'interleaved-thinking-2025-05-14',
    })
    expect(JSON.stringify(written)).not.toContain('spoofed')
  })

  it('have no betas when none is in the list', () => {
    expect(write('messages', { messages }).headers).toEqual({ ...SENT, 'anthropic-version': '2023-06-01' })
  })
})
