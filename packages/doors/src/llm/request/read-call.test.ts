import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CallName } from '../routes/find-route.ts'
import { readCall } from './read-call.ts'

type Json = Record<string, unknown>

const user = { role: 'user', content: 'hi' }
const VALID: Readonly<Record<CallName, Json>> = {
  chat: { model: 'm', messages: [user] },
  responses: { model: 'm', input: [user] },
  embeddings: { model: 'm', input: 'hi' },
  messages: { model: 'm', max_tokens: 10, messages: [user] },
  countTokens: { model: 'm', messages: [user] },
}
const NAMES = ['chat', 'responses', 'embeddings', 'messages', 'countTokens'] as const satisfies readonly CallName[]

const read = (name: CallName, change: Json) =>
  readCall(name, Buffer.from(JSON.stringify({ ...VALID[name], ...change })))
const refusal = (name: CallName, change: Json): string => {
  try {
    return `accepted: ${JSON.stringify(read(name, change))}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const part = (name: CallName, one: Json): Json =>
  name === 'responses' ? { input: [{ ...user, content: [one] }] } : { messages: [{ ...user, content: [one] }] }
const image = (source: Json) => part('messages', { type: 'image', source })

describe('what runs at the provider is refused with the reason', () => {
  const TOOL = 'runs a tool at the provider; that would need a rule of kind model-tool, and no such rule exists yet.'
  it.each<readonly [CallName, Json, string]>([
    ['chat', { web_search_options: {} }, '"web_search_options"'],
    ['chat', { tools: [{ type: 'web_search' }] }, '"tools[0].type" "web_search"'],
    ['responses', { tools: [{ type: 'web_search_preview' }] }, '"tools[0].type" "web_search_preview"'],
    ['responses', { tools: [{ type: 'web_search_2025_08_26' }] }, '"tools[0].type" "web_search_2025_08_26"'],
    ['responses', { tools: [{ type: 'mcp', server_url: 'https://x' }] }, '"tools[0].type" "mcp"'],
    ['responses', { tools: [{ type: 'code_interpreter' }] }, '"tools[0].type" "code_interpreter"'],
    ['responses', { tools: [{ type: 'computer_use_preview' }] }, '"tools[0].type" "computer_use_preview"'],
    ['responses', { tools: [{ type: 'file_search' }] }, '"tools[0].type" "file_search"'],
    ['responses', { tools: [{ type: 'image_generation' }] }, '"tools[0].type" "image_generation"'],
    ['responses', { tool_choice: { type: 'mcp', server_label: 'x' } }, '"tool_choice.type" "mcp"'],
    ['responses', { input: [{ type: 'mcp_call', id: 'x' }] }, '"input[0].type" "mcp_call"'],
    ['responses', { max_tool_calls: 3 }, '"max_tool_calls"'],
    ['messages', { mcp_servers: [] }, '"mcp_servers"'],
    ['messages', { tools: [{ type: 'web_search_20250305', name: 'x' }] }, '"tools[0].type" "web_search_20250305"'],
    ['messages', { tools: [{ type: 'web_fetch_20260318', name: 'x' }] }, '"tools[0].type" "web_fetch_20260318"'],
    ['messages', { tools: [{ type: 'code_execution_20260521' }] }, '"tools[0].type" "code_execution_20260521"'],
    ['messages', { tools: [{ type: 'computer_20250124' }] }, '"tools[0].type" "computer_20250124"'],
    ['messages', { tools: [{ type: 'browser_toolset_20260801' }] }, '"tools[0].type" "browser_toolset_20260801"'],
    [
      'messages',
      { tools: [{ type: 'tool_search_tool_bm25_20251119' }] },
      '"tools[0].type" "tool_search_tool_bm25_20251119"',
    ],
    ['countTokens', { tools: [{ type: 'web_search_20250305' }] }, '"tools[0].type" "web_search_20250305"'],
    ['messages', part('messages', { type: 'server_tool_use' }), '"messages[0].content[0].type" "server_tool_use"'],
  ])('%s %j', (name, change, field) => {
    expect(refusal(name, change)).toBe(`${field} ${TOOL} Define a function tool, and run it in the sandbox.`)
  })
})

describe('what the provider would fetch is refused with the reason', () => {
  const FETCH = 'that would need a rule of kind model-fetch, and no such rule exists yet.'
  const remote = 'https://attacker.example/a.png'
  it.each<readonly [CallName, Json]>([
    ['chat', part('chat', { type: 'image_url', image_url: { url: remote } })],
    ['chat', part('chat', { type: 'image_url', image_url: { url: ` ${remote}` } })],
    ['chat', part('chat', { type: 'image_url', image_url: { url: 'file:///etc/passwd' } })],
    ['chat', part('chat', { type: 'image_url', image_url: { url: 'data:text/html;base64,AAAA' } })],
    ['responses', part('responses', { type: 'input_image', image_url: remote, detail: 'auto' })],
    ['responses', part('responses', { type: 'input_file', file_url: remote })],
    ['messages', image({ type: 'url', url: remote })],
    ['messages', part('messages', { type: 'document', source: { type: 'url', url: remote } })],
  ])('%s %j', (name, change) => {
    expect(refusal(name, change)).toContain(FETCH)
  })

  it.each([
    { $ref: 'https://attacker.example/s.json' },
    { $ref: '//attacker.example/s.json' },
    { $ref: 'other.json' },
    { properties: { a: { anyOf: [{ $dynamicRef: 'http://attacker.example' }] } } },
    { $id: 'https://attacker.example/', $ref: '#/x' },
    { id: 'https://attacker.example/', $ref: '#/x' },
    { id: '\thttps://attacker.example/' },
    { $id: 'ht\ntps://attacker.example/' },
    { $id: '\\\\attacker.example/' },
    { $schema: 'https://attacker.example/schema' },
    { $schema: 'https://json-schema.org.attacker.example/schema' },
    { $schema: ' https://json-schema.org/draft/2020-12/schema' },
    { properties: { a: { $schema: '//attacker.example/schema' } } },
  ])('a schema %j', (parameters) => {
    const tools = [{ type: 'function', function: { name: 'f', parameters } }]
    expect(refusal('chat', { tools })).toBe(
      '"tools[0].function.parameters" refers to a schema outside of itself, which a server could fetch. Begin references with "#".',
    )
  })

  it('but a schema may have references, and properties with such names', () => {
    const parameters = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { id: { type: 'string' } },
      properties: { id: { $ref: '#/$defs/id' }, $ref: { type: 'string' } },
    }
    expect(read('chat', { tools: [{ type: 'function', function: { name: 'f', parameters } }] })).toMatchObject({
      body: { tools: [{ function: { parameters } }] },
    })
  })
})

describe('what the provider keeps for the account of the server is refused with the reason', () => {
  const STATE =
    'uses state that the provider keeps for the account of the server; that would need a rule of kind model-state'
  it.each<readonly [CallName, Json]>([
    ['responses', { previous_response_id: 'resp_1' }],
    ['responses', { conversation: 'conv_1' }],
    ['responses', { prompt: { id: 'pmpt_1' } }],
    ['responses', { context_management: [] }],
    ['responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
    ['responses', part('responses', { type: 'input_file', file_id: 'file-1' })],
    ['responses', { prompt_cache_retention: '24h' }],
    ['chat', part('chat', { type: 'file', file: { file_id: 'file-1' } })],
    ['responses', part('responses', { type: 'input_image', image_url: 'data:image/png;base64,', file_id: 'file-1' })],
    ['chat', { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] }],
    ['messages', { container: 'container_1' }],
    ['messages', { thread: { id: 'x' } }],
    ['messages', { diagnostics: { previous_message_id: 'msg_1' } }],
    ['messages', image({ type: 'file', file_id: 'file_1' })],
    ['messages', part('messages', { type: 'container_upload', file_id: 'file_1' })],
  ])('%s %j', (name, change) => {
    expect(refusal(name, change)).toContain(STATE)
  })
})

describe('what the price table does not have is refused with the reason', () => {
  it.each<readonly [CallName, Json, string]>([
    ['chat', { service_tier: 'priority' }, 'service_tier'],
    ['responses', { service_tier: 'flex' }, 'service_tier'],
    ['messages', { service_tier: 'priority' }, 'service_tier'],
    ['messages', { speed: 'fast' }, 'speed'],
    ['responses', { reasoning: { mode: 'pro' } }, 'reasoning.mode'],
    ['chat', { prediction: { type: 'content', content: 'x' } }, 'prediction'],
    ['chat', { modalities: ['audio'] }, 'modalities'],
    ['messages', { inference_geo: 'us' }, 'inference_geo'],
    ['chat', part('chat', { type: 'input_audio', input_audio: {} }), 'messages[0].content[0].type'],
  ])('%s %j', (name, change, field) => {
    expect(refusal(name, change)).toContain(`"${field}"`)
    expect(refusal(name, change)).toMatch(/price|costs what/)
  })
})

describe('who pays is refused where an answer could not be ours', () => {
  it.each<readonly [CallName, Json]>([
    ['messages', { workspace_id: 'wrkspc_1' }],
    ['messages', { user_profile_id: 'u' }],
    ['messages', { billing_policy: {} }],
  ])('%s %j', (name, change) => {
    expect(refusal(name, change)).toContain(
      'says who asks or pays, which is decided outside of the sandbox. Leave it out.',
    )
  })
})

describe('values out of range are refused by name', () => {
  it.each<readonly [CallName, Json, string]>([
    ['chat', { max_tokens: 0 }, 'max_tokens'],
    ['chat', { max_completion_tokens: 1.5 }, 'max_completion_tokens'],
    ['chat', { n: 0 }, 'n'],
    ['chat', { n: -1 }, 'n'],
    ['chat', { temperature: 3 }, 'temperature'],
    ['chat', { top_logprobs: 21 }, 'top_logprobs'],
    ['chat', { logit_bias: { a: 1 } }, 'logit_bias.a'],
    ['chat', { stream: 'true' }, 'stream'],
    ['chat', { messages: [] }, 'messages'],
    ['chat', { messages: [{ role: 'user', content: 1 }] }, 'messages[0].content'],
    ['chat', { messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role'],
    ['chat', { model: '../admin' }, 'model'],
    ['chat', { model: 'm?x=1' }, 'model'],
    ['chat', { model: 7 }, 'model'],
    ['responses', { max_output_tokens: -1 }, 'max_output_tokens'],
    ['responses', { include: ['file_search_call.results'] }, 'include[0]'],
    ['messages', { thinking: { type: 'enabled', budget_tokens: 0 } }, 'thinking.budget_tokens'],
    [
      'messages',
      image({ type: 'base64', media_type: 'image/png', data: 'not base64!' }),
      'messages[0].content[0].source.data',
    ],
    [
      'messages',
      image({ type: 'base64', media_type: 'image/svg+xml', data: '' }),
      'messages[0].content[0].source.media_type',
    ],
    ['embeddings', { input: [] }, 'input'],
    ['embeddings', { input: [-1] }, 'input[0]'],
    ['embeddings', { dimensions: 0 }, 'dimensions'],
  ])('%s %j', (name, change, field) => {
    expect(refusal(name, change)).toMatch(new RegExp(`^"${field.replaceAll(/[.[\]]/g, String.raw`\$&`)}" `))
  })
})

describe('a field that no list has', () => {
  const UNKNOWN = 'is not a field that the model door passes on. Leave it out.'

  it.each(NAMES)('is refused by name in %s', (name) => {
    expect(refusal(name, { api_key: 'sk-1' })).toBe(`"api_key" ${UNKNOWN}`)
    expect(refusal(name, { metadata_: {} })).toBe(`"metadata_" ${UNKNOWN}`)
  })

  it.each<readonly [CallName, Json, string]>([
    ['chat', { messages: [{ ...user, user: 'x' }] }, 'messages[0].user'],
    ['chat', part('chat', { type: 'text', text: 'x', cache: 1 }), 'messages[0].content[0].cache'],
    ['chat', { tools: [{ type: 'function', function: { name: 'f', url: 'x' } }] }, 'tools[0].function.url'],
    ['chat', { tools: [{ type: 'function', function: { name: 'f' }, server: 'x' }] }, 'tools[0].server'],
    ['chat', { response_format: { type: 'text', x: 1 } }, 'response_format.x'],
    ['chat', { stream_options: { x: 1 } }, 'stream_options.x'],
    ['responses', { input: [{ ...user, x: 1 }] }, 'input[0].x'],
    ['responses', { text: { x: 1 } }, 'text.x'],
    ['messages', { system: [{ type: 'text', text: 'x', x: 1 }] }, 'system[0].x'],
    ['messages', { tool_choice: { type: 'auto', x: 1 } }, 'tool_choice.x'],
    ['messages', { thinking: { type: 'adaptive', x: 1 } }, 'thinking.x'],
    ['messages', { cache_control: { type: 'ephemeral', x: 1 } }, 'cache_control.x'],
  ])('is refused within %s %j', (name, change, field) => {
    expect(refusal(name, change)).toBe(`"${field}" ${UNKNOWN}`)
  })

  it('is refused wherever it is in what is closed, however it is written', () => {
    const known = /^(?:__proto__|name|content|role|id|type|status|phase|user|metadata)$/
    const key = fc.string({ minLength: 1, maxLength: 40 }).filter((text) => !known.test(text))
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), key, fc.boolean(), (name, key, isEscaped) => {
        fc.pre(refusal(name, { [key]: 'x' }).endsWith(UNKNOWN))
        const field = `${isEscaped ? escapeAll(key) : JSON.stringify(key)}:"marker",`
        const top = JSON.stringify(VALID[name]).replace('{', () => `{${field}`)
        const inner = JSON.stringify(VALID[name]).replace('{"role"', () => `{${field}"role"`)
        for (const text of [top, ...(name === 'embeddings' ? [] : [inner])])
          expect(() => readCall(name, Buffer.from(text))).toThrow(UNKNOWN)
      }),
    )
  })
})

describe('a marker in every object of a rich body', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const bodies: readonly (readonly [CallName, Json])[] = [
    [
      'chat',
      {
        stream_options: { include_usage: true },
        logit_bias: {},
        tools: [
          { type: 'function', function: { name: 'f', parameters: schema } },
          {
            type: 'custom',
            custom: { name: 'c', format: { type: 'grammar', grammar: { definition: '', syntax: 'lark' } } },
          },
        ],
        functions: [{ name: 'f', parameters: schema }],
        function_call: { name: 'f' },
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
        },
        response_format: { type: 'json_schema', json_schema: { name: 's', schema } },
        messages: [
          { role: 'system', content: [{ type: 'text', text: '' }] },
          {
            role: 'user',
            content: [
              { type: 'image_url', image_url: { url: 'data:image/png;base64,' } },
              { type: 'file', file: { file_data: '' } },
            ],
          },
          {
            role: 'assistant',
            content: [{ type: 'refusal', refusal: '' }],
            function_call: { name: 'f', arguments: '' },
            tool_calls: [
              { id: 'i', type: 'function', function: { name: 'f', arguments: '' } },
              { id: 'i', type: 'custom', custom: { name: 'c', input: '' } },
            ],
          },
          { role: 'tool', tool_call_id: 'i', content: '' },
        ],
      },
    ],
    [
      'responses',
      {
        stream_options: {},
        tools: [
          { type: 'function', name: 'f', parameters: schema, output_schema: schema },
          { type: 'custom', name: 'c', format: { type: 'text' } },
        ],
        tool_choice: { type: 'function', name: 'f' },
        text: { format: { type: 'json_schema', name: 's', schema } },
        reasoning: { effort: 'low' },
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: '' },
              { type: 'input_file', file_data: '' },
            ],
          },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: '' }] },
          { type: 'function_call', call_id: 'i', name: 'f', arguments: '', caller: { type: 'direct' } },
          { type: 'function_call_output', call_id: 'i', output: [{ type: 'input_text', text: '' }] },
          {
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: '' }],
            content: [{ type: 'reasoning_text', text: '' }],
            encrypted_content: '',
          },
        ],
      },
    ],
    [
      'messages',
      {
        cache_control: { type: 'ephemeral' },
        thinking: { type: 'adaptive' },
        output_config: { format: { type: 'json_schema', schema } },
        system: [{ type: 'text', text: '', cache_control: { type: 'ephemeral' } }],
        tools: [
          { name: 'f', input_schema: schema, input_examples: [{}] },
          { type: 'bash_20250124', name: 'bash' },
        ],
        tool_choice: { type: 'auto' },
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' }, transformations: {} },
              { type: 'document', source: { type: 'text', media_type: 'text/plain', data: '' }, citations: {} },
              { type: 'search_result', source: '', title: '', content: [{ type: 'text', text: '' }] },
              { type: 'tool_result', tool_use_id: 'i', content: [{ type: 'text', text: '' }] },
            ],
          },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: '', signature: '' },
              { type: 'tool_use', id: 'i', name: 'f', input: {}, caller: { type: 'direct' } },
            ],
          },
        ],
      },
    ],
  ]
  const OPEN = /\.(?:parameters|schema|input_schema|output_schema|input)(?:$|\.)|input_examples/

  it.each(bodies)('of %s is refused by its path, but in JSON that callers define', (name, change) => {
    const body = { ...VALID[name], ...change }
    expect(refusal(name, change)).toContain('accepted')
    const paths = pathsOf(body)
    expect(paths.length).toBeGreaterThan(20)
    for (const path of paths) {
      const marked = structuredClone(body)
      const place = path.reduce((value: object, key) => Reflect.get(value, key), marked)
      Reflect.set(place, 'marker', 1)
      const written = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
      const said = refusal(name, marked)
      if (OPEN.test(written)) expect(said).toContain('accepted')
      else expect(said).toMatch(/marker|logit_bias/)
    }
  })
})

function pathsOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (Array.isArray(value)) return value.flatMap((inner, at) => pathsOf(inner, [...path, at]))
  if (typeof value !== 'object' || value === null) return []
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))]
}

describe('a body', () => {
  it.each(['null', '[]', '"text"', '1', '{}'])('of %s is refused', (body) => {
    for (const name of NAMES)
      expect(() => readCall(name, Buffer.from(body))).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  it('with a repeated name is refused before it is read', () => {
    const body = '{"model":"m","messages":[{"role":"user","content":"hi"}],"user":"a","us\\u0065r":"b"}'
    expect(() => readCall('chat', Buffer.from(body))).toThrow('The body names "user" twice in one object.')
  })

  it('shows no more of a value than a line', () => {
    const long = 'x'.repeat(100_000)
    expect(refusal('chat', { [long]: 1 }).length).toBeLessThan(200)
    expect(refusal('chat', { tools: [{ type: long }] }).length).toBeLessThan(200)
  })
})

function escapeAll(text: string): string {
  const escaped = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, '0'))
  return `"${escaped.map((hex) => `\\u${hex}`).join('')}"`
}
