import { describe, expect, it } from 'vitest'
import type { CallName } from '../routes/find-route.ts'
import { UsageMeter } from './usage-meter.ts'

const NONE = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: 0 }

function afterEvents(name: CallName, events: readonly unknown[]) {
  const meter = new UsageMeter(name)
  for (const event of events) meter.takeEvent(event)
  return [meter.usage, meter.isFinal]
}

function afterBody(name: CallName, body: unknown) {
  const meter = new UsageMeter(name)
  meter.takeBody(body)
  return [meter.usage, meter.isFinal]
}

const chunk = (usage: unknown, finish: string | null = null) => ({
  choices: [{ index: 0, delta: {}, finish_reason: finish }],
  usage,
})

describe('usage of chat completions', () => {
  it.each([
    [
      { prompt_tokens: 10, completion_tokens: 5 },
      { ...NONE, input: 10, output: 5 },
    ],
    [{ prompt_tokens: 0, completion_tokens: 0 }, NONE],
    [
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 } },
      { input: 3, cacheRead: 4, cacheWrite: 3, cacheWriteLong: 0, output: 5 },
    ],
    [
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: null, cache_creation_tokens: 3 },
      },
      { ...NONE, input: 7, cacheWrite: 3, output: 5 },
    ],
    [
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: null },
      { ...NONE, input: 10, output: 5 },
    ],
  ])('%j is read from the body and from the last chunk', (usage, read) => {
    expect(afterBody('chat', { choices: [], usage })).toEqual([read, true])
    expect(afterEvents('chat', [chunk(null), chunk(null, 'stop'), { choices: [], usage }])).toEqual([read, true])
  })

  it.each([
    undefined,
    null,
    {},
    'text',
    { prompt_tokens: -1, completion_tokens: 5 },
    { prompt_tokens: '10', completion_tokens: 5 },
    { prompt_tokens: 1.5, completion_tokens: 5 },
    { prompt_tokens: 1e300, completion_tokens: 5 },
    { prompt_tokens: 10 },
    { prompt_tokens: 1, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 2 } },
  ])('%j is missing', (usage) => {
    expect(afterBody('chat', { usage })).toEqual(['missing', false])
    expect(afterEvents('chat', [{ choices: [], usage }])).toEqual(['missing', false])
  })

  it('before the end of every choice is not final', () => {
    const zero = { prompt_tokens: 0, completion_tokens: 0 }
    const of = (index: number, finish_reason: string | null, usage: unknown = null) => ({
      choices: [{ index, delta: { content: 'x' }, finish_reason }],
      usage,
    })
    const early = { choices: [], usage: zero }
    expect(afterEvents('chat', [early])).toEqual([NONE, false])
    expect(afterEvents('chat', [early, of(0, null)])).toEqual([NONE, false])
    expect(afterEvents('chat', [of(0, 'stop', zero)])).toEqual([NONE, true])
    expect(afterEvents('chat', [of(0, 'stop', zero), of(0, null)])).toEqual([NONE, false])
    expect(afterEvents('chat', [of(0, null), of(1, null), of(0, 'stop', zero)])).toEqual([NONE, false])
    expect(afterEvents('chat', [of(0, 'stop', zero), of(1, null)])).toEqual([NONE, false])
    expect(afterEvents('chat', [of(0, null), of(1, 'stop'), of(0, 'stop'), early])).toEqual([NONE, true])
  })

  it('in every chunk is that of the last, and final with the last', () => {
    const at = (tokens: number, finish?: string) => chunk({ prompt_tokens: 9, completion_tokens: tokens }, finish)
    const events = [at(1), at(2), at(3, 'stop')]
    expect(afterEvents('chat', events.slice(0, 2))).toEqual([{ ...NONE, input: 9, output: 2 }, false])
    expect(afterEvents('chat', events)).toEqual([{ ...NONE, input: 9, output: 3 }, true])
  })

  it('that becomes unreadable is missing, for it was more than before', () => {
    const good = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }
    const bad = { choices: [], usage: { prompt_tokens: 1, completion_tokens: -1 } }
    expect(afterEvents('chat', [chunk(null, 'stop'), good, bad])).toEqual(['missing', false])
    expect(afterEvents('chat', [chunk(null, 'stop'), bad, good])).toEqual([{ ...NONE, input: 1, output: 1 }, true])
  })

  it('is not read from what a model says', () => {
    const usage = { prompt_tokens: 0, completion_tokens: 0 }
    const content = JSON.stringify({ choices: [], usage })
    const events = [
      { choices: [{ delta: { content, usage }, usage, finish_reason: 'stop' }] },
      { type: 'response.completed', response: { usage: { input_tokens: 0, output_tokens: 0 } } },
      content,
      [{ usage }],
    ]
    expect(afterEvents('chat', events)).toEqual(['missing', false])
  })
})

describe('usage of responses', () => {
  const usage = {
    input_tokens: 10,
    output_tokens: 5,
    input_tokens_details: {
      cached_tokens: 2,
      cache_write_tokens: 4,
      cache_write_tokens_details: { ttl_12h_tokens: 3 },
    },
  }
  const read = { input: 4, cacheRead: 2, cacheWrite: 1, cacheWriteLong: 3, output: 5 }

  it.each(['response.completed', 'response.incomplete', 'response.failed'])('is in the event %s', (type) => {
    expect(afterEvents('responses', [{ type, response: { usage } }])).toEqual([read, true])
    expect(afterBody('responses', { usage })).toEqual([read, true])
  })

  it('is in no other event', () => {
    const events = [
      { type: 'response.created', response: { usage } },
      { type: 'response.output_text.delta', delta: 'x', usage },
      { usage },
    ]
    expect(afterEvents('responses', events)).toEqual(['missing', false])
  })

  it('that is null or zero differs', () => {
    const event = (usage: unknown) => [{ type: 'response.failed', response: { usage } }]
    expect(afterEvents('responses', event(null))).toEqual(['missing', false])
    expect(afterEvents('responses', event({ input_tokens: 0, output_tokens: 0 }))).toEqual([NONE, true])
  })
})

describe('usage of messages', () => {
  const start = (usage: unknown) => ({ type: 'message_start', message: { usage } })
  const delta = (usage: unknown) => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })
  const first = {
    input_tokens: 10,
    output_tokens: 1,
    cache_read_input_tokens: 20,
    cache_creation_input_tokens: 30,
    cache_creation: { ephemeral_5m_input_tokens: 12, ephemeral_1h_input_tokens: 18 },
  }
  const read = { input: 10, cacheRead: 20, cacheWrite: 12, cacheWriteLong: 18, output: 1 }

  it('begins with the message and ends with the last delta, which is cumulative', () => {
    expect(afterEvents('messages', [start(first)])).toEqual([read, false])
    expect(afterEvents('messages', [start(first), delta({ output_tokens: 7 })])).toEqual([{ ...read, output: 7 }, true])
    const twice = [start(first), delta({ output_tokens: 7 }), delta({ output_tokens: 9, input_tokens: null })]
    expect(afterEvents('messages', twice)).toEqual([{ ...read, output: 9 }, true])
    expect(afterEvents('messages', [start(first), delta({ output_tokens: 7, input_tokens: 11 })])).toEqual([
      { ...read, input: 11, output: 7 },
      true,
    ])
    expect(afterBody('messages', { usage: { ...first, cache_creation: null } })).toEqual([
      { ...read, cacheWrite: 30, cacheWriteLong: 0 },
      true,
    ])
  })

  it('that is zero is not missing', () => {
    const zero = { input_tokens: 0, output_tokens: 0 }
    expect(afterEvents('messages', [start(zero), delta({ output_tokens: 0 })])).toEqual([NONE, true])
    expect(afterEvents('messages', [delta({ output_tokens: 0 })])).toEqual(['missing', false])
  })

  it('is in no other event', () => {
    const events = [{ type: 'content_block_delta', delta: { text: JSON.stringify(start(first)) }, usage: first }]
    expect(afterEvents('messages', events)).toEqual(['missing', false])
  })
})

describe('usage of other calls', () => {
  it('of embeddings is their input', () => {
    expect(afterBody('embeddings', { data: [], usage: { prompt_tokens: 8, total_tokens: 8 } })).toEqual([
      { ...NONE, input: 8 },
      true,
    ])
    expect(afterBody('embeddings', { data: [] })).toEqual(['missing', false])
  })

  it('of counting tokens is none', () => {
    expect(afterBody('countTokens', { input_tokens: 8, usage: { input_tokens: 1, output_tokens: 1 } })).toEqual([
      'missing',
      false,
    ])
  })
})
