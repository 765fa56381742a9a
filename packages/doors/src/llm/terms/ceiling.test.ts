import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readCall } from '../request/read-call.ts'
import { writeCall } from '../request/write-call.ts'
import type { CallName } from '../routes/find-route.ts'
import { PRICES, TERMS } from '../testing/terms.ts'
import { ADDED, ceilingOf } from './ceiling.ts'
import { costOf } from './cost.ts'
import { fitCall, outputTokensOf } from './fit-call.ts'
import type { ModelTerms } from './model-terms.ts'

function ceiling(name: CallName, body: object, change: Partial<ModelTerms> = {}) {
  const terms = { ...TERMS, ...change }
  const call = fitCall(readCall(name, Buffer.from(JSON.stringify({ model: 'm', ...body }))), terms)
  const written = writeCall(call, terms.upstreamModel)
  return { ...ceilingOf({ call, body: written }, terms), written, call, terms }
}

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })

function googleCall(): object {
  const extra_content = { google: { thought_signature: 'AAAA' } }
  return { id: 'i', type: 'function', function: { name: 'f', arguments: '' }, extra_content }
}

describe('the most that a call can use', () => {
  it('is the bytes of its body and what providers add', () => {
    const { inputTokens, outputTokens, microDollars, written } = ceiling('chat', { ...user('hi'), max_tokens: 100 })
    expect(inputTokens).toBe(written.length + ADDED.call + ADDED.part)
    expect(outputTokens).toBe(100)
    expect(microDollars).toBe(Math.ceil(inputTokens * 3.75 + 100 * 15))
  })

  it('counts what providers write about each tool, and more for those that they define', () => {
    const [own, defined] = [
      { name: 'f', input_schema: {} },
      { type: 'bash_20250124', name: 'bash' },
    ]
    const added = (tools: readonly object[]) => {
      const { inputTokens, written } = ceiling('messages', { ...user('hi'), tools })
      return inputTokens - written.length - ADDED.call - ADDED.part
    }
    expect(added([own, own, defined])).toBe(3 * ADDED.tool + ADDED.definedTool)
  })

  it('is not more than the context', () => {
    expect(ceiling('chat', user('x'.repeat(300_000))).inputTokens).toBe(200_000)
  })

  it.each([
    ['image', { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } }, 1600],
    ['file', { type: 'file', file: { file_data: 'A'.repeat(100_000) } }, Infinity],
  ])('counts an %s by the table, or as the whole context', (_, part, tokens) => {
    const { inputTokens, written } = ceiling('chat', user([part]))
    const text = written.length - 100_000 + ADDED.call + 2 * ADDED.part
    expect(inputTokens).toBeLessThanOrEqual(Math.min(200_000, text + tokens))
    expect(inputTokens).toBeGreaterThanOrEqual(Math.min(200_000, tokens))
    expect(ceiling('chat', user([part]), { tokensPer: { ...TERMS.tokensPer, image: null } }).inputTokens).toBe(200_000)
  })

  it('does not take arguments of a tool for an image', () => {
    const data = 'A'.repeat(50_000)
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
    const use = { type: 'tool_use', id: 'i', name: 'f', input: image }
    const body = (block: object) => ({ messages: [{ role: 'assistant', content: [block] }] })
    expect(ceiling('messages', body(use)).inputTokens).toBeGreaterThan(50_000)
    expect(ceiling('messages', body(image)).inputTokens).toBeLessThan(5_000)
  })

  it.each<readonly [CallName, object]>([
    [
      'messages',
      { messages: [{ role: 'assistant', content: [{ type: 'thinking', thinking: '', signature: 'AAAA' }] }] },
    ],
    ['messages', { messages: [{ role: 'assistant', content: [{ type: 'redacted_thinking', data: 'AAAA' }] }] }],
    ['responses', { input: [{ type: 'reasoning', summary: [], encrypted_content: 'AAAA' }] }],
    ['chat', { messages: [{ role: 'assistant', thinking_blocks: [{ type: 'redacted_thinking', data: 'AAAA' }] }] }],
    ['chat', { messages: [{ role: 'assistant', tool_calls: [googleCall()] }] }],
  ])('is the context where only the provider can read what it is sent: %s %j', (name, body) => {
    const tokensPer = { ...TERMS.tokensPer, opaqueCharacter: null }
    expect(ceiling(name, body, { tokensPer }).inputTokens).toBe(200_000)
    expect(ceiling(name, body).inputTokens).toBeLessThan(3_000)
  })

  it('of embeddings is the sum of the inputs, each of which has a context', () => {
    const one = (input: unknown) => ceiling('embeddings', { input }, { contextTokens: 8000 }).inputTokens
    expect(one('hi')).toBe(2 + ADDED.embedding)
    expect(one(['hi', 'x'.repeat(9000)])).toBe(2 + ADDED.embedding + 8000)
    expect(one(['x'.repeat(9000), 'y'.repeat(9000), 'z'.repeat(9000)])).toBe(24_000)
    expect(one([7, 8, 9])).toBe(3 + ADDED.embedding)
    expect(one([[7, 8], Array.from({ length: 9000 }, () => 1)])).toBe(2 + ADDED.embedding + 8000)
  })

  it('of counting tokens is nothing', () => {
    expect(ceiling('countTokens', user('hi'))).toMatchObject({ inputTokens: 0, outputTokens: 0, microDollars: 0 })
  })

  it('in money is not known where a price is not', () => {
    expect(ceiling('chat', user('hi'), { prices: null }).microDollars).toBeNull()
  })

  it('takes the price of a longer cache only where one is asked for', () => {
    const cached = (ttl: string) => ({
      max_tokens: 1,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl } }] }],
    })
    const [short, long] = [ceiling('messages', cached('5m')), ceiling('messages', cached('1h'))]
    expect(short.microDollars).toBe(Math.ceil(short.inputTokens * 3.75 + 15))
    expect(long.microDollars).toBe(Math.ceil(long.inputTokens * 6 + 15))
  })

  it('takes the dearer table where the input could be long', () => {
    const longContext = { overTokens: 10_000, prices: { ...PRICES, input: 6_000_000, output: 22_500_000 } }
    const short = ceiling('chat', { ...user('x'), max_tokens: 10 }, { longContext })
    const long = ceiling('chat', { ...user('x'.repeat(20_000)), max_tokens: 10 }, { longContext })
    expect(short.microDollars).toBe(Math.ceil(short.inputTokens * 3.75 + 150))
    expect(long.microDollars).toBe(Math.ceil(long.inputTokens * 6 + 225))
  })
})

describe('an upstream that bills the most', () => {
  const said = fc.oneof(
    fc.string({ maxLength: 200 }),
    fc.string({ unit: 'binary', maxLength: 50 }),
    fc.constant('\ufdfa'),
  )
  const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }).filter(isPlain)
  const image = fc.nat(300).map((size) => ({ url: `data:image/png;base64,${'A'.repeat(size)}` }))
  const textPart = said.map((text) => ({ type: 'text', text }))
  const bounds = fc.record({ max_tokens: fc.integer({ min: 1, max: 20_000 }), n: fc.integer({ min: 1, max: 4 }) })
  const tools = fc.array(fc.record({ name: fc.constant('f'), description: said, parameters: json }), { maxLength: 3 })

  const chat = fc
    .tuple(
      fc.array(
        fc.oneof(
          textPart,
          image.map((image_url) => ({ type: 'image_url', image_url })),
        ),
        { minLength: 1 },
      ),
      tools,
      bounds,
    )
    .map(([content, functions, bounds]) => ({
      name: 'chat' as const,
      body: { ...user(content), tools: functions.map((one) => ({ type: 'function', function: one })), ...bounds },
    }))
  const messages = fc
    .tuple(
      fc.array(
        fc.oneof(
          textPart,
          json.map((input) => ({ type: 'tool_use', id: 'i', name: 'f', input })),
        ),
      ),
      tools,
      bounds,
    )
    .map(([content, tools, { max_tokens }]) => ({
      name: 'messages' as const,
      body: {
        ...user(content),
        max_tokens,
        system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }],
        tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })),
      },
    }))
  const responses = fc.tuple(fc.array(said), bounds).map(([texts, { max_tokens }]) => ({
    name: 'responses' as const,
    body: { input: texts.map((text) => ({ role: 'user', content: text })), max_output_tokens: max_tokens },
  }))
  const embeddings = fc.array(said, { minLength: 1 }).map((input) => ({ name: 'embeddings' as const, body: { input } }))

  const price = fc.integer({ min: 0, max: 1_000_000_000 })
  const prices = fc.record({ input: price, cacheRead: price, cacheWrite: price, cacheWriteLong: price, output: price })
  const terms = fc.record({
    contextTokens: fc.integer({ min: 1000, max: 50_000 }),
    maxOutputTokens: fc.integer({ min: 1, max: 10_000 }),
    prices,
    longContext: fc.option(fc.record({ overTokens: fc.nat(40_000), prices })),
    tokensPer: fc.record({
      image: fc.option(fc.nat(2000)),
      file: fc.constant(null),
      opaqueCharacter: fc.option(fc.constant(1)),
    }),
  })
  const kind = fc.constantFrom('input', 'cacheRead', 'cacheWrite', 'cacheWriteLong')

  it('never bills more than the ceiling', () => {
    fc.assert(
      fc.property(fc.oneof(chat, messages, responses, embeddings), terms, kind, ({ name, body }, change, kind) => {
        const { written, call, terms, ...ceil } = ceiling(name, body, change)
        const input = name === 'embeddings' ? readEach(written, terms) : readAll(written, terms)
        const billed = kind === 'cacheWriteLong' && name !== 'messages' ? 'cacheWrite' : kind
        const none = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }
        const usage = { ...none, [billed]: input, output: outputTokensOf(call) }
        expect(input).toBeLessThanOrEqual(ceil.inputTokens)
        expect(costOf(usage, terms)).toBeLessThanOrEqual(ceil.microDollars ?? -1)
      }),
    )
  })

  /** One token for each byte of each name, string and number, as it is or normalised, and all that may be added. */
  function readAll(body: string, terms: ModelTerms): number {
    const images = body.match(/"data:image\/png;base64,[^"]*"/g) ?? []
    const text = JSON.parse(body.replaceAll(/("data:image\/png;base64,)[^"]*"/g, '$1"'))
    const added =
      ADDED.call + ADDED.part * (text.messages ?? text.input).length + ADDED.tool * (text.tools?.length ?? 0)
    const pictures = images.length === 0 ? 0 : images.length * (terms.tokensPer.image ?? Infinity)
    return Math.min(terms.contextTokens, tokenize(text) + added + pictures)
  }

  function readEach(body: string, terms: ModelTerms): number {
    const inputs: readonly string[] = JSON.parse(body).input
    return inputs.reduce((sum, text) => sum + Math.min(terms.contextTokens, tokenize(text) + ADDED.embedding), 0)
  }

  function tokenize(value: unknown): number {
    if (Array.isArray(value)) return value.reduce<number>((sum, inner) => sum + tokenize(inner), 0)
    if (typeof value === 'object' && value !== null) return tokenize(Object.entries(value).flat())
    const text = String(value)
    return Math.max(Buffer.byteLength(text), Buffer.byteLength(text.normalize('NFKC')))
  }

  /** Without what is refused: prototypes, numbers of 16 digits, and references to elsewhere. */
  function isPlain(value: unknown): boolean {
    return !/__proto__|\d{16}|"\$?(?:id|ref)"/.test(JSON.stringify(value))
  }
})
