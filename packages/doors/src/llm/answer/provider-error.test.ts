import Anthropic from '@anthropic-ai/sdk'
import { AirlockError } from '@airlock/contract'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import type { Protocol } from '../routes/find-route.ts'
import { errorAnswer, textOf } from './error-body.ts'
import { MAX_ERROR_BYTES, type ProviderFailure, typeFailure, usageOfFailure } from './provider-error.ts'

const CANARY = 'sk-canary-0123456789abcdefghij'
const json = (error: unknown) => Buffer.from(JSON.stringify({ error }))
const failure = (change: Partial<ProviderFailure>): ProviderFailure => ({
  status: 400,
  retryAfter: undefined,
  body: json({ message: `because ${CANARY}`, type: 'x', code: 'y' }),
  ...change,
})

describe('an error of the provider', () => {
  it.each([
    [401, 'upstream_refused', 502],
    [402, 'upstream_refused', 502],
    [403, 'upstream_refused', 502],
    [404, 'model_not_found', 404],
    [408, 'upstream_failed', 503],
    [429, 'upstream_busy', 429],
    [500, 'upstream_failed', 503],
    [502, 'upstream_failed', 503],
    [529, 'upstream_failed', 503],
    [599, 'upstream_failed', 503],
    [200, 'upstream_broken', 502],
    [301, 'upstream_broken', 502],
    [600, 'upstream_broken', 502],
  ])('%d is %s, and nothing of its text is passed on', (status, code, ours) => {
    const typed = typeFailure(failure({ status }))
    expect([typed.error.code, typed.status]).toEqual([code, ours])
    expect(`${typed.error.message} ${typed.error.hint}`).not.toContain('because')
  })

  it.each([400, 409, 413, 422])('%d keeps its status and says what the provider said, masked', (status) => {
    const typed = typeFailure(failure({ status }))
    expect([typed.error.code, typed.status]).toEqual(['upstream_rejected', status])
    expect(typed.error.message).toBe('The model provider rejected the request: because …')
  })

  it.each([
    ['is HTML', Buffer.from(`<html>${CANARY}</html>`)],
    ['is not JSON', Buffer.from(`{"error": {"message": "${CANARY}`)],
    ['has another shape', Buffer.from(JSON.stringify({ message: CANARY }))],
    ['is too long', json({ message: 'x'.repeat(MAX_ERROR_BYTES) })],
    ['broke off', undefined],
    ['is a list', Buffer.from('[]')],
  ])('of which the body %s is passed on without it', (_, body) => {
    expect(typeFailure(failure({ body })).error.message).toBe('The model provider rejected the request.')
  })

  it.each([
    [429, { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' }],
    [429, { message: 'x', type: 'requests', code: 'insufficient_quota' }],
    [400, { message: 'Your credit balance is too low to access the API.', type: 'invalid_request_error' }],
    [403, { message: 'x', type: 'billing_error' }],
  ])('%d about the account of the server is not about the caller: %j', (status, error) => {
    const typed = typeFailure(failure({ status, body: json(error) }))
    expect(typed).toMatchObject({ status: 502, error: { code: 'upstream_refused', retryable: false } })
  })

  it.each([
    [429, '7', 7],
    [503, '7', 7],
    [429, '999999', 86_400],
    [429, '1e9', undefined],
    [429, '-1', undefined],
    [429, `7\r\nx: ${CANARY}`, undefined],
    [429, CANARY, undefined],
    [429, undefined, undefined],
    [400, '7', undefined],
  ])('%d with retry-after %j waits %j seconds', (status, retryAfter, seconds) => {
    expect(typeFailure(failure({ status, retryAfter })).error.retryAfterS).toBe(seconds)
  })
})

describe('usage in the body of a failure', () => {
  const read = { input: 3, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: 1 }
  it.each([
    ['{"error":{"message":"no"}}', 'none'],
    ['<html>busy</html>', 'none'],
    ['', 'none'],
    ['{"error":{},"usage":null}', 'none'],
    ['{"error":{},"usage":{"prompt_tokens":3,"completion_tokens":1}}', read],
    ['{"error":{},"usage":{"prompt_tokens":-3}}', 'unreadable'],
    ['{"error":{},"usage":"much"}', 'unreadable'],
  ])('of %s is %j', (body, usage) => {
    expect(usageOfFailure('chat', Buffer.from(body))).toEqual(usage)
  })
})

describe('the message of a provider', () => {
  it.each([
    ['Unknown parameter: messages[0].foo', 'Unknown parameter: messages[0].foo'],
    ["Invalid schema for function 'get_weather': type", "Invalid schema for function 'get_weather': type"],
    ['model claude-sonnet-5-20260929 is too small', 'model claude-sonnet-5-20260929 is too small'],
    [`key ${CANARY}.`, 'key ….'],
    ['Authorization: Bearer abc.def', 'Authorization: …'],
    [`token ${'Ab1_'.repeat(9)}`, 'token …'],
    ['see https://internal.example/a?key=x now', 'see … now'],
    ['upstream 10.0.0.7:8080 failed', 'upstream … failed'],
    ['in organization org-a1b2c3 on req_01abc', 'in organization … on …'],
    ['a\r\nb\u0000c\u001b[31md', 'a b c [31md'],
    ['x y '.repeat(500), `${'x y '.repeat(125)}…`],
  ])('%j reads %j', (message, masked) => {
    const { error } = typeFailure(failure({ body: json({ message }) }))
    expect(error.message).toBe(`The model provider rejected the request: ${masked}`)
  })
})

describe('an unmodified client', () => {
  const messages = [{ role: 'user' as const, content: 'hi' }]
  /** With the retries that it has by itself. */
  async function ask(protocol: Protocol, error: AirlockError, status?: number, charged: number | null = null) {
    let calls = 0
    const fetch = async () => {
      calls += 1
      const answer = errorAnswer(error, { protocol, callId: 'call_1', charged }, status)
      return new Response(answer.body, { status: answer.status, headers: { ...answer.headers, 'retry-after-ms': '1' } })
    }
    const client =
      protocol === 'openai'
        ? new OpenAI({ apiKey: 'x', fetch }).chat.completions.create({ model: 'm', messages })
        : new Anthropic({ apiKey: 'x', fetch }).messages.create({ model: 'm', max_tokens: 9, messages })
    const thrown: unknown = await client.catch((error: unknown) => error)
    return { thrown, calls }
  }

  it.each<readonly [AirlockError, number, string]>([
    [new AirlockError('invalid_request', 'Wrong.'), 400, 'invalid_request_error'],
    [new AirlockError('budget_exhausted'), 402, 'insufficient_quota'],
    [new AirlockError('policy_denied'), 403, 'permission_error'],
    [new AirlockError('route_not_found'), 404, 'invalid_request_error'],
    [new AirlockError('upstream_refused'), 502, 'server_error'],
  ])('of openai reads %s and does not try again', async (error, status, type) => {
    const { thrown, calls } = await ask('openai', error)
    expect(thrown).toMatchObject({ status, type, code: error.code, requestID: 'call_1' })
    expect(thrown).toHaveProperty('message', `${status} ${textOf(error)}`)
    expect(calls).toBe(1)
  })

  it.each<readonly [AirlockError, number, string]>([
    [new AirlockError('invalid_request', 'Wrong.'), 400, 'invalid_request_error'],
    [new AirlockError('budget_exhausted'), 402, 'billing_error'],
    [new AirlockError('policy_denied'), 403, 'permission_error'],
    [new AirlockError('route_not_found'), 404, 'not_found_error'],
    [new AirlockError('upstream_refused'), 502, 'api_error'],
  ])('of anthropic reads %s and does not try again', async (error, status, type) => {
    const { thrown, calls } = await ask('anthropic', error)
    expect(thrown).toMatchObject({ status, type, errorCode: error.code, requestID: 'call_1' })
    expect(thrown).toHaveProperty('message', expect.stringContaining(error.message))
    expect(calls).toBe(1)
  })

  it.each<Protocol>(['openai', 'anthropic'])('of %s tries again where that helps', async (protocol) => {
    for (const code of ['upstream_busy', 'upstream_failed'] as const)
      expect(await ask(protocol, new AirlockError(code, undefined, { retryAfterS: 1 }))).toMatchObject({ calls: 3 })
  })

  it.each<Protocol>(['openai', 'anthropic'])(
    'of %s does not repeat a call that is charged its ceiling',
    async (protocol) => {
      const { thrown, calls } = await ask(protocol, new AirlockError('upstream_broken'), undefined, 1_280_000)
      expect(calls).toBe(1)
      const message = 'The call is charged at its ceiling ($1.28), and so is each retry.'
      expect(thrown).toHaveProperty('message', expect.stringContaining(message))
    },
  )

  it('reads whole sentences', () => {
    expect(textOf({ message: 'It costs $1 a million tokens', hint: 'See docs.' })).toBe(
      'It costs $1 a million tokens. See docs.',
    )
  })

  it('reads the status that the provider gave', async () => {
    expect(await ask('openai', new AirlockError('upstream_rejected'), 422)).toMatchObject({ thrown: { status: 422 } })
  })

  it.each([
    [new AirlockError('invalid_request', '"x" is not a field. Leave it out.'), '"x" is not a field. Leave it out.'],
    [new AirlockError('budget_exhausted', 'Of the day.'), 'Of the day. Ask for "airlock budget set".'],
    [
      new AirlockError('upstream_busy'),
      'The provider of the model takes no more calls now. Try again in a moment, or ask for a higher max_concurrent.',
    ],
  ])('reads what happened and what to do next: %s', (error, text) => {
    expect(textOf(error)).toBe(text)
  })

  it('is told how long to wait', () => {
    const { headers } = errorAnswer(new AirlockError('upstream_busy', undefined, { retryAfterS: 7 }), {
      protocol: 'openai',
      callId: 'call_1',
    })
    expect(headers).toEqual({
      'content-type': 'application/json',
      'x-request-id': 'call_1',
      'request-id': 'call_1',
      'retry-after': '7',
    })
  })
})
