import type { Reservation, UpstreamKind } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { aReservation } from '../testing/reservations.ts'
import { OutgoingBody } from './outgoing.ts'

const CHAT = { model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }], max_completion_tokens: 100 }

function send(body: object | string, changes: Partial<Reservation> = {}, kind: UpstreamKind = 'openai'): string {
  const outgoing = new OutgoingBody()
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  for (let at = 0; at < bytes.length; at += 5) outgoing.push(bytes.subarray(at, at + 5))
  return outgoing.end(aReservation({ model: 'gpt-5', maxOutputTokens: 100, ...changes }), kind).toString()
}

describe('a body', () => {
  it('goes out as it came in, byte by byte', () => {
    const text = '{ "model" : "gpt-5",\n"max_tokens":1e2, "seed":12345678901234567890,"messages":[{"a":1,"a":2}]}'
    expect(send(text, {}, 'compatible')).toBe(text)
  })

  it.each([
    ['more tokens', { ...CHAT, max_completion_tokens: 101 }],
    ['more tokens by its older name', { ...CHAT, max_tokens: 101 }],
    ['more answers', { ...CHAT, n: 2 }],
    ['no bound', { ...CHAT, max_completion_tokens: undefined }],
    ['a bound that is a text', { ...CHAT, max_completion_tokens: '1' }],
    ['a bound that is none', { ...CHAT, max_completion_tokens: null }],
    ['a bound below one', { ...CHAT, max_completion_tokens: 0 }],
    ['a bound that is a list', { ...CHAT, max_completion_tokens: [1] }],
    ['a fraction of an answer', { ...CHAT, n: 0.5 }],
    ['another model', { ...CHAT, model: 'gpt-5-pro' }],
    ['the model in another case', { ...CHAT, model: 'GPT-5' }],
    ['a list of models', { ...CHAT, model: ['gpt-5'] }],
    ['no model', { ...CHAT, model: undefined }],
  ])('that asks for %s than was reserved is refused', (_what, body) => {
    expect(() => send(body)).toThrow(expect.objectContaining({ code: 'reservation_rejected' }))
  })

  it('may ask for less, and for several answers together', () => {
    expect(send({ ...CHAT, max_completion_tokens: 50, n: 2 })).toContain('"n":2')
    expect(() => send({ ...CHAT, max_completion_tokens: 51, n: 2 })).toThrow('how many tokens')
  })

  it.each([
    'user',
    'metadata',
    'safety_identifier',
    'prompt_cache_key',
    'service_tier',
    'store',
    'previous_response_id',
    'background',
    'web_search_options',
    'mcp_servers',
    'api_base',
    'api_key',
    'fallbacks',
    'litellm_metadata',
    'extra_headers',
    'mock_response',
    '__proto__',
    'Model',
  ])('with %s is refused by that name', (name) => {
    const text = JSON.stringify(CHAT).replace('{', `{${JSON.stringify(name)}:1,`)
    expect(() => send(text)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: `${name} must not be in a body of chat.` }),
    )
  })

  it.each([
    ['litellm', 'chat', CHAT, { user: 'default/alice' }],
    ['litellm', 'embeddings', { model: 'gpt-5', input: 'x' }, { user: 'default/alice' }],
    ['litellm', 'responses', { model: 'gpt-5', max_output_tokens: 1 }, { store: false, user: 'default/alice' }],
    ['litellm', 'messages', { model: 'gpt-5', max_tokens: 1 }, { metadata: { user_id: 'default/alice' } }],
    ['litellm', 'count_tokens', { model: 'gpt-5', messages: [] }, {}],
    ['openai', 'responses', { model: 'gpt-5', max_output_tokens: 1 }, { store: false }],
    ['openai', 'chat', CHAT, { store: false }],
    ['compatible', 'chat', CHAT, {}],
    ['anthropic', 'messages', { model: 'gpt-5', max_tokens: 1 }, {}],
  ] as const)('to %s for %s says who pays, and that nothing is kept there', (kind, route, body, ours) => {
    expect(JSON.parse(send(body, { route }, kind))).toEqual({ ...ours, ...body })
  })
})
