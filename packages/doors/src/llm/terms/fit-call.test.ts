import { describe, expect, it } from 'vitest'
import type { CallName } from '../routes/find-route.ts'
import { readCall } from '../request/read-call.ts'
import { TERMS } from '../testing/terms.ts'
import { fitCall, outputTokensOf } from './fit-call.ts'
import type { ModelTerms } from './model-terms.ts'

const messages = [{ role: 'user', content: 'hi' }]

function fit(name: CallName, body: object, terms: Partial<ModelTerms> = {}) {
  const input = name === 'responses' || name === 'embeddings' ? { input: 'hi' } : { messages }
  const call = readCall(name, Buffer.from(JSON.stringify({ model: 'm', ...input, ...body })))
  const fitted = fitCall(call, { ...TERMS, ...terms })
  const { model: _model, messages: _messages, input: _input, ...fields } = JSON.parse(JSON.stringify(fitted.body))
  return { fields, outputTokens: outputTokensOf(fitted) }
}

describe('the bound on an answer', () => {
  it.each([
    ['is set where the client set none', {}, { max_completion_tokens: 8192 }],
    ['stays where it is lower', { max_completion_tokens: 5 }, { max_completion_tokens: 5 }],
    ['is lowered where it is higher', { max_completion_tokens: 9000 }, { max_completion_tokens: 8192 }],
    ['is written in the field that the upstream honours', { max_tokens: 5 }, { max_completion_tokens: 5 }],
    ['is the lower of two', { max_tokens: 7, max_completion_tokens: 6 }, { max_completion_tokens: 6 }],
    ['holds for each of several answers', { max_tokens: 7, n: 3 }, { max_completion_tokens: 7, n: 3 }],
  ])('of chat completions %s', (_, body, fields) => {
    expect(fit('chat', body).fields).toEqual(fields)
  })

  it('of chat completions is in the other field for another upstream', () => {
    expect(fit('chat', { max_completion_tokens: 5 }, { outputField: 'max_tokens' }).fields).toEqual({ max_tokens: 5 })
  })

  it.each([
    [{}, { max_output_tokens: 8192 }],
    [{ max_output_tokens: 5 }, { max_output_tokens: 5 }],
    [{ max_output_tokens: 8193 }, { max_output_tokens: 8192 }],
  ])('of responses with %j is %j', (body, fields) => {
    expect(fit('responses', body).fields).toEqual(fields)
  })

  it.each([
    [{}, { max_tokens: 8192 }],
    [{ max_tokens: 5 }, { max_tokens: 5 }],
    [{ max_tokens: 100_000 }, { max_tokens: 8192 }],
    [
      { max_tokens: 100_000, thinking: { type: 'enabled', budget_tokens: 90_000 } },
      { max_tokens: 8192, thinking: { type: 'enabled', budget_tokens: 8191 } },
    ],
    [
      { max_tokens: 4096, thinking: { type: 'enabled', budget_tokens: 2048 } },
      { max_tokens: 4096, thinking: { type: 'enabled', budget_tokens: 2048 } },
    ],
    [
      { max_tokens: 5, thinking: { type: 'adaptive' } },
      { max_tokens: 5, thinking: { type: 'adaptive' } },
    ],
  ])('of messages with %j is %j', (body, fields) => {
    expect(fit('messages', body).fields).toEqual(fields)
  })

  it('that leaves no room for thinking is refused', () => {
    const body = { max_tokens: 1024, thinking: { type: 'enabled', budget_tokens: 1024 } }
    expect(() => fit('messages', body)).toThrow(
      '"thinking.budget_tokens" needs at least 1024 tokens below "max_tokens", which is 1024 here.',
    )
  })

  it('is refused rather than lowered for the number of answers', () => {
    expect(() => fit('chat', { n: 5 })).toThrow('"n" is 5; this model gives at most 4 answers.')
  })

  it.each<readonly [CallName, object, number]>([
    ['chat', { max_tokens: 7, n: 3 }, 21],
    ['responses', {}, 8192],
    ['messages', { max_tokens: 9 }, 9],
    ['embeddings', {}, 0],
    ['countTokens', {}, 0],
  ])('of %s %j is %d tokens in all', (name, body, tokens) => {
    expect(fit(name, body).outputTokens).toBe(tokens)
  })
})
