import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { AirlockError } from '@airlock/contract'
import { driveAnswer } from '../testing/drive-answer.ts'
import { AnswerStream } from './answer-stream.ts'
import type { StreamedCall } from './judge-event.ts'
import { writeStreamError } from './stream-error.ts'

const CANARY = 'sk-canary-0123456789abcdef'

function run(call: Partial<StreamedCall>, chunks: readonly Buffer[]) {
  const streamed = { name: 'chat' as const, callId: 'call_1', wantsUsageChunk: false, ...call }
  const stream = new AnswerStream(streamed)
  const out = [
    ...chunks.flatMap((chunk) => driveAnswer(stream.write(chunk), streamed)),
    ...driveAnswer(stream.end(), streamed),
  ]
  return {
    text: Buffer.concat(out).toString(),
    usage: stream.meter.usage,
    isFinal: stream.meter.isFinal,
  }
}

const whole = (call: Partial<StreamedCall>, text: string) => run(call, [Buffer.from(text)])
const event = (data: unknown, name?: string) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const ENDS = [
  ['LF', '\n'],
  ['CRLF', '\r\n'],
  ['CR', '\r'],
] as const

const chat = (fields: object) => event({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })
const choice = (content: string, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason }],
  usage: null,
})
const OURS = chat({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } })
/** With a first chunk that has no choices either, and with a model that writes what our chunk looks like. */
const CHAT = [
  chat({ choices: [], prompt_filter_results: [] }),
  ': keep-alive\n\n',
  chat(choice('hé')),
  chat(choice('{"choices":[],"usage":{"prompt_tokens":1}}', 'stop')),
  OURS,
  event('[DONE]'),
].join('')
const CHAT_USAGE = { input: 9, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: 2 }

const RESPONSES = [
  event(
    { type: 'response.created', sequence_number: 0, response: { id: 'r', usage: null, error: null } },
    'response.created',
  ),
  event({ type: 'response.output_text.delta', sequence_number: 1, delta: 'hé' }, 'response.output_text.delta'),
  event(
    {
      type: 'response.completed',
      sequence_number: 2,
      response: { id: 'r', error: null, usage: { input_tokens: 9, output_tokens: 2 } },
    },
    'response.completed',
  ),
].join('')

const MESSAGES = [
  event({ type: 'message_start', message: { id: 'm', usage: { input_tokens: 9, output_tokens: 1 } } }, 'message_start'),
  event({ type: 'ping' }, 'ping'),
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hé' } }, 'content_block_delta'),
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }, 'message_delta'),
  event({ type: 'message_stop' }, 'message_stop'),
].join('')

describe('an answer that is cut at every byte', () => {
  function expectEverywhere(call: Partial<StreamedCall>, text: string, passed: string) {
    const bytes = Buffer.from(text)
    const expected = { text: passed, usage: CHAT_USAGE, isFinal: true }
    for (let at = 0; at <= bytes.length; at++)
      expect(run(call, [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected)
    expect(
      run(
        call,
        Array.from(bytes, (byte) => Buffer.from([byte])),
      ),
    ).toEqual(expected)
  }

  it.each(ENDS)('and ends lines with %s is passed on, less the chunk that we asked for', (_, end) => {
    const lines = (text: string) => text.replaceAll('\n', end)
    expectEverywhere({}, lines(CHAT), lines(CHAT.replace(OURS, '')))
  })

  it.each(ENDS)('and ends lines with %s is passed on whole to a client that asked for it', (_, end) => {
    const text = CHAT.replaceAll('\n', end)
    expectEverywhere({ wantsUsageChunk: true }, text, text)
  })

  it.each(ENDS)('and ends lines with %s is passed on whole in other protocols', (_, end) => {
    const [responses, messages] = [RESPONSES.replaceAll('\n', end), MESSAGES.replaceAll('\n', end)]
    expectEverywhere({ name: 'responses' }, responses, responses)
    expectEverywhere({ name: 'messages' }, messages, messages)
  })
})

describe('a chunk with usage', () => {
  it('beside the last choice stays', () => {
    const usage = { prompt_tokens: 9, completion_tokens: 2 }
    const text = chat({ ...choice('x', 'stop'), usage }) + event('[DONE]')
    expect(whole({}, text)).toEqual({ text, usage: CHAT_USAGE, isFinal: true })
  })

  it('that is all that came before the stream broke off is still taken out', () => {
    expect(whole({}, chat(choice('x')) + OURS.trimEnd())).toEqual({
      text: chat(choice('x')),
      usage: CHAT_USAGE,
      isFinal: false,
    })
  })

  it('that never comes is missing', () => {
    expect(whole({}, chat(choice('x', 'stop')) + event('[DONE]'))).toMatchObject({ usage: 'missing', isFinal: false })
    expect(whole({ name: 'responses' }, event({ type: 'response.created' }))).toMatchObject({ usage: 'missing' })
  })
})

describe('an error in a stream is replaced, and says nothing of the provider', () => {
  const secret = { message: `Incorrect API key provided: ${CANARY}`, type: 'overloaded_error', code: 'x' }
  it.each<readonly [StreamedCall['name'], string, string]>([
    ['chat', event({ error: secret }), 'upstream_busy'],
    ['chat', event({ error: CANARY }), 'upstream_failed'],
    ['chat', event(CANARY, 'error'), 'upstream_failed'],
    ['chat', event({ error: { ...secret, code: 'insufficient_quota' } }), 'upstream_refused'],
    ['messages', event({ type: 'error', error: secret }, 'error'), 'upstream_busy'],
    ['messages', event(CANARY, 'error'), 'upstream_failed'],
    ['messages', event({ type: 'error', error: secret }), 'upstream_busy'],
  ])('%s %s is %s', (name, text, code) => {
    const said = whole({ name }, text).text
    expect(said).not.toContain('canary')
    expect(said).toContain(code)
    expect(said).toMatch(/\n\n$/)
  })

  it('responses keep their number and their codes', () => {
    const error = { type: 'error', sequence_number: 5, code: 'server_error', message: CANARY, param: null }
    expect(parseOnly(whole({ name: 'responses' }, event(error, 'error')).text)).toEqual({
      type: 'error',
      sequence_number: 5,
      code: 'server_error',
      message: 'The provider of the model failed. Try again in a moment.',
      param: null,
    })
  })

  it('responses that failed keep their usage', () => {
    const response = {
      id: 'r',
      status: 'failed',
      usage: { input_tokens: 9, output_tokens: 2 },
      error: { code: 'rate_limit_exceeded', message: CANARY },
    }
    const outcome = whole(
      { name: 'responses' },
      event({ type: 'response.failed', sequence_number: 5, response }, 'response.failed'),
    )
    expect(outcome).toMatchObject({ usage: CHAT_USAGE, isFinal: true })
    expect(outcome.text).not.toContain('canary')
    expect(parseOnly(outcome.text)).toMatchObject({
      type: 'response.failed',
      sequence_number: 5,
      response: { id: 'r', status: 'failed' },
    })
  })

  function parseOnly(text: string): unknown {
    return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '')
  }
})

describe('an unmodified client', () => {
  const answering = (name: StreamedCall['name'], text: string, wantsUsageChunk = false) => ({
    apiKey: 'placeholder',
    maxRetries: 0,
    fetch: async () =>
      new Response(whole({ name, wantsUsageChunk }, text).text, { headers: { 'content-type': 'text/event-stream' } }),
  })
  const messages = [{ role: 'user' as const, content: 'hi' }]

  it('of openai reads the chunks of a completion, each with a choice', async () => {
    const text = CHAT.replace(chat({ choices: [], prompt_filter_results: [] }), '')
    const client = new OpenAI(answering('chat', text))
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true })
    const deltas = await Array.fromAsync(stream, ({ choices: [first] }) => first?.delta.content)
    expect(deltas).toEqual(['hé', '{"choices":[],"usage":{"prompt_tokens":1}}'])
  })

  it('of openai that asked for usage reads it', async () => {
    const client = new OpenAI(answering('chat', CHAT, true))
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true })
    const chunks = await Array.fromAsync(stream)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 9 } })
  })

  it('of openai throws the error of a stream', async () => {
    const client = new OpenAI(answering('chat', event({ error: { message: CANARY } })))
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true })
    await expect(Array.fromAsync(stream)).rejects.toMatchObject({ code: 'upstream_failed', type: 'server_error' })
  })

  it('throws an error of ours that ends a stream', async () => {
    const ended = (name: StreamedCall['name'], before: string) =>
      before + writeStreamError(new AirlockError('killed'), { name, callId: 'call_1' }).toString()
    const chats = new OpenAI({ ...answering('chat', ''), fetch: serve(ended('chat', chat(choice('x')))) })
    const chunks = await chats.chat.completions.create({ model: 'm', messages, stream: true })
    await expect(Array.fromAsync(chunks)).rejects.toMatchObject({ code: 'killed' })
    const blocks = new Anthropic({ ...answering('messages', ''), fetch: serve(ended('messages', MESSAGES)) })
    const events = await blocks.messages.create({ model: 'm', max_tokens: 9, messages, stream: true })
    await expect(Array.fromAsync(events)).rejects.toMatchObject({ errorCode: 'killed' })
    const items = new OpenAI({ ...answering('responses', ''), fetch: serve(ended('responses', '')) })
    const parts = await items.responses.create({ model: 'm', input: 'hi', stream: true })
    await expect(Array.fromAsync(parts)).rejects.toThrow('A killswitch is on.')
  })

  const serve = (text: string) => async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })

  it('of openai reads the events of a response', async () => {
    const client = new OpenAI(answering('responses', RESPONSES))
    const stream = await client.responses.create({ model: 'm', input: 'hi', stream: true })
    const types = await Array.fromAsync(stream, ({ type }) => type)
    expect(types).toEqual(['response.created', 'response.output_text.delta', 'response.completed'])
  })

  it('of anthropic reads the events of a message, and throws its error', async () => {
    const client = new Anthropic(answering('messages', MESSAGES))
    const stream = await client.messages.create({ model: 'm', max_tokens: 9, messages, stream: true })
    const types = await Array.fromAsync(stream, ({ type }) => type)
    expect(types).toEqual(['message_start', 'content_block_delta', 'message_delta', 'message_stop'])
    const broken = new Anthropic(answering('messages', event({ type: 'error', error: { message: CANARY } }, 'error')))
    const errors = await broken.messages.create({ model: 'm', max_tokens: 9, messages, stream: true })
    await expect(Array.fromAsync(errors)).rejects.toMatchObject({
      type: 'overloaded_error',
      errorCode: 'upstream_failed',
    })
  })
})

describe('the last event of a stream', () => {
  it.each([
    ['chat', event('[DONE]')],
    ['messages', event({ type: 'message_stop' }, 'message_stop')],
    ['responses', event({ type: 'response.completed', response: {} }, 'response.completed')],
    ['responses', event({ type: 'response.incomplete', response: {} }, 'response.incomplete')],
  ] as const)('of %s is known: %j', (name, last) => {
    const hasEnded = (text: string) => {
      const call = { name, callId: 'call_1', wantsUsageChunk: false }
      const stream = new AnswerStream(call)
      driveAnswer(stream.write(Buffer.from(text)), call)
      return stream.hasEnded
    }
    expect(hasEnded(last)).toBe(true)
    expect(hasEnded(event({ text: last }))).toBe(false)
    expect(hasEnded(last.slice(0, last.length / 2))).toBe(false)
  })
})
