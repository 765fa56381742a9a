import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { describeModel, listModels } from './model-list.ts'
import { answerHeaders, kindOfAnswer, readAnswer } from './read-answer.ts'

const CANARY = 'sk-canary-0123456789abcdef'

describe('the kind of an answer', () => {
  it.each([
    [200, 'application/json', false, 'json'],
    [200, 'Application/JSON; charset=utf-8', false, 'json'],
    [200, 'text/event-stream; charset=utf-8', true, 'stream'],
    [200, 'application/json', true, 'broken'],
    [200, 'text/event-stream', false, 'broken'],
    [200, 'text/html', false, 'broken'],
    [200, undefined, false, 'broken'],
    [201, 'application/json', false, 'broken'],
    [204, undefined, false, 'broken'],
    [101, undefined, false, 'broken'],
    [302, 'application/json', false, 'broken'],
    [400, 'text/html', true, 'failure'],
    [599, undefined, false, 'failure'],
    [600, undefined, false, 'broken'],
  ])('with status %d and type %s where a stream is wanted: %s is %s', (status, contentType, isStream, kind) => {
    expect(kindOfAnswer({ status, contentType }, isStream)).toBe(kind)
  })

  it('decides its headers, none of which is of the provider', () => {
    const ids = { 'x-request-id': 'call_1', 'request-id': 'call_1', 'cache-control': 'no-store' }
    expect(answerHeaders('json', 'call_1')).toEqual({ 'content-type': 'application/json', ...ids })
    expect(answerHeaders('stream', 'call_1')).toEqual({ 'content-type': 'text/event-stream; charset=utf-8', ...ids })
  })
})

describe('an answer that came whole', () => {
  it('goes on byte for byte', () => {
    const bytes = Buffer.from('{ "choices": [ ],\n"usage": {"prompt_tokens": 1, "completion_tokens": 2}, "é": 1e2 }')
    const answer = readAnswer('chat', bytes)
    expect(answer).toMatchObject({ replaced: null, usage: { input: 1, output: 2 }, isFinal: true })
  })

  it.each(['', 'null', '[]', '"text"', '{"a":', CANARY])('is broken when it is %j', (text) => {
    expect(() => readAnswer('chat', Buffer.from(text))).toThrow(
      expect.objectContaining({ code: 'upstream_broken', message: expect.not.stringContaining('canary') }),
    )
  })

  it.each(['chat', 'embeddings', 'messages', 'countTokens'] as const)('of %s may be an error all the same', (name) => {
    const bytes = Buffer.from(JSON.stringify({ error: { message: CANARY, type: 'overloaded_error' } }))
    expect(() => readAnswer(name, bytes)).toThrow(
      expect.objectContaining({ code: 'upstream_busy', message: expect.not.stringContaining('canary') }),
    )
  })

  it('of a response that failed keeps its usage and loses what the provider said', () => {
    const body = {
      id: 'r',
      status: 'failed',
      error: { code: 'server_error', message: CANARY },
      usage: { input_tokens: 1, output_tokens: 2 },
    }
    const { replaced, usage } = readAnswer('responses', Buffer.from(JSON.stringify(body)))
    expect(usage).toMatchObject({ input: 1, output: 2 })
    const text = Buffer.from(replaced ?? []).toString()
    expect(text).not.toContain('canary')
    expect(JSON.parse(text)).toMatchObject({ id: 'r', status: 'failed', error: { code: 'server_error' } })
  })

  it('of a response that did not fail goes on byte for byte', () => {
    const bytes = Buffer.from('{"id":"r","error":null,"usage":null}')
    expect(readAnswer('responses', bytes)).toMatchObject({ replaced: null, usage: 'missing' })
  })
})

describe('models, as an unmodified client reads them', () => {
  const answering = (body: object) => ({ apiKey: 'x', fetch: async () => Response.json(body) })
  const names = ['airlock/demo', 'gpt-5']

  it('of openai', async () => {
    const list = await new OpenAI(answering(listModels(names, 'openai'))).models.list()
    expect(list.data.map(({ id }) => id)).toEqual(names)
    expect(await new OpenAI(answering(describeModel('gpt-5', 'openai'))).models.retrieve('gpt-5')).toMatchObject({
      id: 'gpt-5',
      object: 'model',
    })
  })

  it('of anthropic, page by page, of which there is one', async () => {
    const found = await Array.fromAsync(new Anthropic(answering(listModels(names, 'anthropic'))).models.list())
    expect(found.map(({ id }) => id)).toEqual(names)
    expect(await Array.fromAsync(new Anthropic(answering(listModels([], 'anthropic'))).models.list())).toEqual([])
  })
})
