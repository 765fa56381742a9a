import { modelRouteOf } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import type { CallName } from '../routes/find-route.ts'
import { chatBody } from './chat.ts'
import { embeddingsBody } from './embeddings.ts'
import { countTokensBody, messagesBody } from './messages.ts'
import { readCall } from './read-call.ts'
import { responsesBody } from './responses.ts'
import { modelRouteOfCall, writeCall } from './write-call.ts'

const messages = [{ role: 'user', content: 'hi' }]

function write(name: CallName, body: object): unknown {
  const call = readCall(name, Buffer.from(JSON.stringify({ model: 'alias', ...body })))
  return JSON.parse(writeCall(call, 'vendor/model-1'))
}

describe('what goes upstream', () => {
  it.each<readonly [CallName, object, object]>([
    ['chat', { messages }, { user: 'x', metadata: { tenant: 'x' }, store: true, safety_identifier: 'x' }],
    ['responses', { input: 'hi' }, { user: 'x', metadata: {}, store: true, background: true, prompt_cache_key: 'x' }],
    ['embeddings', { input: 'hi' }, { user: 'x' }],
    ['messages', { messages }, { metadata: { user_id: 'x' }, service_tier: 'auto', speed: 'standard' }],
    ['countTokens', { messages }, { speed: 'standard' }],
  ])('of %s names the model of the upstream, and nobody who pays', (name, theirs, left) => {
    expect(write(name, { ...theirs, ...left })).toEqual({ model: 'vendor/model-1', ...theirs })
  })

  it.each([
    ['is silent about usage', undefined],
    ['wants usage', { include_usage: true }],
    ['wants none', { include_usage: false, include_obfuscation: false }],
  ])('asks for usage of a stream when the client %s', (_, stream_options) => {
    expect(write('chat', { messages, stream: true, stream_options })).toMatchObject({
      stream: true,
      stream_options: { ...stream_options, include_usage: true },
    })
  })

  it('asks for no usage where there is no stream', () => {
    expect(write('chat', { messages, stream: false })).not.toHaveProperty('stream_options')
    expect(write('responses', { input: 'hi', stream: true })).not.toHaveProperty('stream_options')
  })
})

/** Fields that are understood and left out. */
const LEFT_OUT = new Set([
  'service_tier',
  'speed',
  'store',
  'background',
  'user',
  'metadata',
  'safety_identifier',
  'prompt_cache_key',
])

it.each([
  ['chat', chatBody],
  ['responses', responsesBody],
  ['embeddings', embeddingsBody],
  ['messages', messagesBody],
  ['countTokens', countTokensBody],
] as const)('no field of %s is lost between the schema and the list of keys', (name, { shape }) => {
  const { fields } = modelRouteOf(modelRouteOfCall({ name }))
  expect(Object.keys(shape).filter((field) => !fields.has(field) && !LEFT_OUT.has(field))).toEqual([])
})
