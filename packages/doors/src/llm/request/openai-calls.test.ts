import type OpenAI from 'openai'
import { zodFunction, zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findRoute } from '../routes/find-route.ts'
import { captureOpenAI } from '../testing/capture.ts'
import { isStream, type ModelCall, readCall, wantsUsageChunk } from './read-call.ts'

const PNG = 'data:image/png;base64,iVBORw0KGgo='
const weather = z.object({ city: z.string(), unit: z.enum(['c', 'f']).optional().nullable() })
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

async function read(call: (client: OpenAI) => PromiseLike<unknown>): Promise<{ call: ModelCall; sent: unknown }> {
  const captured = await captureOpenAI(call)
  const route = findRoute(captured)
  if (!route || route.name === 'model' || route.name === 'models' || route.name === 'health')
    throw new TypeError(`no route: ${captured.target}`)
  return { call: readCall(route.name, Buffer.from(captured.body)), sent: JSON.parse(captured.body) }
}

/** As it is sent: what is undefined is gone. */
const written = (call: ModelCall): unknown => JSON.parse(JSON.stringify(call.body))

describe('chat completions of the openai client are passed on whole', () => {
  const ask = [{ role: 'user', content: 'hi' }] as const
  it.each<readonly [string, OpenAI.ChatCompletionCreateParams]>([
    ['a question', { model: 'gpt-5', messages: [...ask] }],
    [
      'every sampling parameter',
      {
        model: 'gpt-4.1',
        messages: [
          { role: 'system', content: 'be brief' },
          { role: 'developer', content: [{ type: 'text', text: 'in French' }], name: 'dev' },
          ...ask,
        ],
        max_completion_tokens: 100,
        temperature: 0.5,
        top_p: 1,
        frequency_penalty: 0.1,
        presence_penalty: -0.1,
        logit_bias: { '50256': -100 },
        logprobs: true,
        top_logprobs: 3,
        stop: ['\n', 'END'],
        seed: 42,
        n: 2,
        parallel_tool_calls: false,
        reasoning_effort: 'low',
        verbosity: 'low',
        service_tier: 'default',
      },
    ],
    ['a stream', { model: 'gpt-5', messages: [...ask], stream: true }],
    [
      'a stream with usage',
      { model: 'gpt-5', messages: [...ask], stream: true, stream_options: { include_usage: true } },
    ],
    [
      'images and files as bytes',
      {
        model: 'gpt-5',
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'what is this?' },
              { type: 'image_url', image_url: { url: PNG, detail: 'low' } },
              { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
            ],
          },
        ],
      },
    ],
    [
      'tools, their calls and results',
      {
        model: 'gpt-5',
        tools: [
          { type: 'function', function: { name: 'weather', description: 'now', parameters: PARAMETERS, strict: true } },
          zodFunction({ name: 'by_zod', parameters: weather }),
          {
            type: 'custom',
            custom: { name: 'patch', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } },
          },
        ],
        tool_choice: { type: 'function', function: { name: 'weather' } },
        messages: [
          ...ask,
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
              { id: 'call_2', type: 'custom', custom: { name: 'patch', input: 'x' } },
            ],
          },
          { role: 'tool', tool_call_id: 'call_1', content: '20' },
          { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'done' }] },
        ],
      },
    ],
    [
      'a JSON schema',
      {
        model: 'gpt-5',
        messages: [...ask],
        response_format: zodResponseFormat(weather, 'weather'),
        tool_choice: 'none',
      },
    ],
    [
      'functions of the first protocol',
      {
        model: 'gpt-4',
        functions: [{ name: 'weather', parameters: PARAMETERS }],
        function_call: { name: 'weather' },
        messages: [...ask, { role: 'function', name: 'weather', content: '20' }],
      },
    ],
  ])('%s', async (_, params) => {
    const { call, sent } = await read(async (client) => client.chat.completions.create(params))
    expect(call.name).toBe('chat')
    expect(withoutNulls(written(call))).toEqual(withoutNulls(sent))
    expect(isStream(call)).toBe(params.stream === true)
    expect(wantsUsageChunk(call)).toBe(params.stream_options?.include_usage === true)
  })

  it('with an answer sent back as it came', async () => {
    const answer = {
      role: 'assistant',
      content: 'hello',
      refusal: null,
      annotations: [],
      parsed: { city: 'Rome' },
    } as unknown as OpenAI.ChatCompletionMessageParam
    const { call } = await read(async (client) =>
      client.chat.completions.create({ model: 'gpt-5', messages: [...ask, answer, ...ask] }),
    )
    expect(written(call)).toEqual({
      model: 'gpt-5',
      messages: [...ask, { role: 'assistant', content: 'hello' }, ...ask],
    })
  })

  it('with thoughts sent back as gateways give them', async () => {
    const answer = {
      role: 'assistant',
      content: '',
      reasoning_content: 'hm',
      thinking_blocks: [{ type: 'thinking', thinking: 'hm', signature: 'EqQB' }],
      tool_calls: [
        {
          id: 'call_1__thought__AAAA'.padEnd(3000, 'A'),
          type: 'function',
          function: { name: 'f', arguments: '{}' },
          extra_content: { google: { thought_signature: 'AAAA' } },
        },
      ],
    } as const
    const { call } = await read(async (client) =>
      client.chat.completions.create({
        model: 'm',
        messages: [...ask, answer as unknown as OpenAI.ChatCompletionMessageParam],
      }),
    )
    expect(written(call)).toEqual({ model: 'm', messages: [...ask, answer] })
  })

  it('but for who asks and what to store, which is left out', async () => {
    const { call } = await read(async (client) =>
      client.chat.completions.create({
        model: 'gpt-5',
        messages: [...ask],
        user: 'somebody',
        safety_identifier: 'somebody',
        prompt_cache_key: 'theirs',
        metadata: { tenant: 'other' },
        store: true,
      }),
    )
    expect(written(call)).toEqual({ model: 'gpt-5', messages: [...ask] })
  })
})

describe('responses of the openai client are passed on whole', () => {
  it.each<readonly [string, OpenAI.Responses.ResponseCreateParams]>([
    ['a question', { model: 'gpt-5', input: 'hi' }],
    [
      'parameters, messages, images and files',
      {
        model: 'gpt-5',
        instructions: 'be brief',
        input: [
          { role: 'developer', content: 'in French' },
          {
            type: 'message',
            role: 'user',
            content: [
              { type: 'input_text', text: 'what is this?' },
              { type: 'input_image', image_url: PNG, detail: 'auto' },
              { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
            ],
          },
        ],
        max_output_tokens: 100,
        stream: true,
        stream_options: { include_obfuscation: false },
        temperature: 1,
        top_p: 0.5,
        top_logprobs: 2,
        include: ['reasoning.encrypted_content'],
        reasoning: { effort: 'low', summary: 'auto' },
        text: { format: zodTextFormat(weather, 'weather'), verbosity: 'low' },
        truncation: 'auto',
        service_tier: 'auto',
        parallel_tool_calls: true,
      },
    ],
    [
      'tools, their calls and results',
      {
        model: 'gpt-5',
        tools: [
          { type: 'function', name: 'weather', parameters: PARAMETERS, strict: true, description: 'now' },
          { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'regex', definition: '.*' } },
        ],
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'weather' }] },
        input: [
          { role: 'user', content: 'hi' },
          { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{}' },
          { type: 'function_call_output', call_id: 'call_1', output: '20' },
          { type: 'custom_tool_call', call_id: 'call_2', name: 'patch', input: 'x' },
          { type: 'custom_tool_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'done' }] },
        ],
      },
    ],
  ])('%s', async (_, params) => {
    const { call, sent } = await read(async (client) => client.responses.create(params))
    expect(call.name).toBe('responses')
    expect(withoutNulls(written(call))).toEqual(withoutNulls(sent))
    expect(isStream(call)).toBe(params.stream === true)
  })

  it('with an answer sent back as it came, but without ids of what the provider stored', async () => {
    const output: OpenAI.Responses.ResponseInputItem[] = [
      { type: 'reasoning', id: 'rs_1', summary: [] },
      {
        type: 'reasoning',
        id: 'rs_2',
        summary: [{ type: 'summary_text', text: 'thought' }],
        encrypted_content: 'gAAA',
      },
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        phase: 'final_answer',
        content: [{ type: 'output_text', text: 'hello', annotations: [], logprobs: [] }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '{}', status: 'completed' },
    ]
    const { call } = await read(async (client) =>
      client.responses.create({
        model: 'gpt-5',
        store: true,
        background: true,
        user: 'x',
        metadata: {},
        input: output,
      }),
    )
    expect(written(call)).toEqual({
      model: 'gpt-5',
      input: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'thought' }], encrypted_content: 'gAAA' },
        {
          type: 'message',
          role: 'assistant',
          phase: 'final_answer',
          content: [{ type: 'output_text', text: 'hello' }],
        },
        { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{}' },
      ],
    })
  })
})

describe('embeddings of the openai client are passed on whole', () => {
  it.each<readonly [string, OpenAI.EmbeddingCreateParams]>([
    ['a text, for which the client asks base64', { model: 'text-embedding-3-small', input: 'hi' }],
    ['texts', { model: 'text-embedding-3-small', input: ['a', 'b'], dimensions: 256, encoding_format: 'float' }],
    ['tokens', { model: 'text-embedding-3-small', input: [1, 2, 3] }],
    ['lists of tokens', { model: 'text-embedding-3-small', input: [[1, 2], [3]] }],
  ])('%s', async (_, params) => {
    const { call, sent } = await read(async (client) => client.embeddings.create(params))
    expect(call.name).toBe('embeddings')
    expect(written(call)).toEqual(sent)
  })
})

describe('models of the openai client', () => {
  it('are asked for by the routes of the list', async () => {
    const list = await captureOpenAI(async (client) => client.models.list())
    const one = await captureOpenAI(async (client) => client.models.retrieve('airlock/demo'))
    expect([findRoute(list), findRoute(one)]).toEqual([
      { name: 'models', protocol: 'openai' },
      { name: 'model', model: 'airlock/demo', protocol: 'openai' },
    ])
  })
})

/** Null and absent are one for the provider. */
function withoutNulls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, inner: unknown) => inner ?? undefined))
}
