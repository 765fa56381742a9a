import type Anthropic from '@anthropic-ai/sdk'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findRoute } from '../routes/find-route.ts'
import { captureAnthropic } from '../testing/capture.ts'
import { isStream, type ModelCall, readCall } from './read-call.ts'

const written = (call: ModelCall): unknown => JSON.parse(JSON.stringify(call.body))
const image: Anthropic.ImageBlockParam = {
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
}
const base = { model: 'claude-sonnet-5', max_tokens: 1024, messages: [{ role: 'user' as const, content: 'hi' }] }

async function read(call: (client: Anthropic) => PromiseLike<unknown>): Promise<{ call: ModelCall; sent: unknown }> {
  const captured = await captureAnthropic(call)
  const route = findRoute(captured)
  if (route?.name !== 'messages' && route?.name !== 'countTokens') throw new TypeError(`no route: ${captured.target}`)
  return { call: readCall(route.name, Buffer.from(captured.body)), sent: JSON.parse(captured.body) }
}

describe('messages of the anthropic client are passed on whole', () => {
  it.each<readonly [string, Anthropic.MessageCreateParams]>([
    ['a question', base],
    [
      'every sampling parameter',
      {
        ...base,
        system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral', ttl: '1h' } }],
        stop_sequences: ['END'],
        output_config: { effort: 'low' },
        service_tier: 'standard_only',
        stream: true,
      },
    ],
    [
      'thinking',
      { ...base, max_tokens: 4096, thinking: { type: 'enabled', budget_tokens: 2048, display: 'summarized' } },
    ],
    ['adaptive thinking', { ...base, thinking: { type: 'adaptive' } }],
    [
      'images and documents as bytes',
      {
        ...base,
        messages: [
          {
            role: 'user',
            content: [
              { ...image, cache_control: { type: 'ephemeral' } },
              {
                type: 'document',
                title: 'a',
                context: 'b',
                citations: { enabled: true },
                source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
              },
              { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'text' } },
              { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }, image] } },
              {
                type: 'search_result',
                source: 'https://example.com/a',
                title: 't',
                content: [{ type: 'text', text: 'x' }],
              },
              { type: 'text', text: 'what are these?' },
            ],
          },
        ],
      },
    ],
    [
      'tools, their calls and results',
      {
        ...base,
        tools: [
          {
            name: 'weather',
            description: 'now',
            input_schema: { type: 'object', properties: { city: { type: 'string' } } },
            cache_control: { type: 'ephemeral' },
            strict: true,
          },
          { type: 'custom', name: 'other', input_schema: { type: 'object' }, input_examples: [{ a: 1 }] },
          { type: 'bash_20250124', name: 'bash' },
          { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 1000 },
          { type: 'memory_20250818', name: 'memory' },
        ],
        tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
        messages: [
          { role: 'user', content: 'hi' },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'hm', signature: 'EqQB' },
              { type: 'redacted_thinking', data: 'EmwK' },
              { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Rome', deep: [{ a: null }] } },
            ],
          },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 'toolu_1',
                is_error: false,
                content: [{ type: 'text', text: '20' }, image],
              },
              { type: 'tool_result', tool_use_id: 'toolu_2', content: 'text' },
            ],
          },
        ],
      },
    ],
    ['a JSON schema', { ...base, output_config: { format: zodOutputFormat(z.object({ city: z.string() })) } }],
  ])('%s', async (_, params) => {
    const { call, sent } = await read(async (client) => client.messages.create(params))
    expect(call.name).toBe('messages')
    expect(written(call)).toEqual(sent)
    expect(isStream(call)).toBe(params.stream === true)
  })

  it('as a stream of the helper', async () => {
    const { call, sent } = await read(async (client) => client.messages.stream(base).finalMessage())
    expect(written(call)).toEqual(sent)
    expect(isStream(call)).toBe(true)
  })

  it('as a parsed answer of the helper', async () => {
    const output_config = { format: zodOutputFormat(z.object({ city: z.string() })) }
    const { call, sent } = await read(async (client) => client.messages.parse({ ...base, output_config }))
    expect(written(call)).toEqual(sent)
  })

  it('of the beta client, whose route has a parameter', async () => {
    const { call, sent } = await read(async (client) =>
      client.beta.messages.create({ ...base, betas: ['interleaved-thinking-2025-05-14'] }),
    )
    expect(written(call)).toEqual(sent)
  })

  it('with an answer sent back as it came', async () => {
    const answer = {
      role: 'assistant',
      id: 'msg_1',
      type: 'message',
      model: 'claude-sonnet-5',
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 1 },
      content: [
        {
          type: 'text',
          text: 'hello',
          citations: [
            {
              type: 'char_location',
              cited_text: 'x',
              document_index: 0,
              document_title: null,
              file_id: null,
              start_char_index: 0,
              end_char_index: 1,
            },
          ],
        },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {}, caller: { type: 'direct' }, toolset_name: null },
      ],
    } as unknown as Anthropic.MessageParam
    const { call } = await read(async (client) =>
      client.messages.create({ ...base, messages: [...base.messages, answer], metadata: { user_id: 'somebody' } }),
    )
    const citation = {
      type: 'char_location',
      cited_text: 'x',
      document_index: 0,
      start_char_index: 0,
      end_char_index: 1,
    }
    expect(written(call)).toEqual({
      ...base,
      messages: [
        ...base.messages,
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'hello', citations: [citation] },
            { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} },
          ],
        },
      ],
    })
  })
})

describe('other calls of the anthropic client', () => {
  it('count tokens', async () => {
    const { max_tokens: _, ...counted } = base
    const { call, sent } = await read(async (client) => client.messages.countTokens({ ...counted, system: 'be brief' }))
    expect(call.name).toBe('countTokens')
    expect(written(call)).toEqual(sent)
  })

  it('list models in their own shape', async () => {
    const list = await captureAnthropic(async (client) => client.models.list({ limit: 5 }))
    const one = await captureAnthropic(async (client) => client.models.retrieve('airlock/demo'))
    expect([findRoute(list), findRoute(one)]).toEqual([
      { name: 'models', protocol: 'anthropic' },
      { name: 'model', model: 'airlock/demo', protocol: 'anthropic' },
    ])
  })
})
