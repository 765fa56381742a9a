import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { AnswerStream } from '../answer/answer-stream.ts'
import { answerHeaders, readAnswer } from '../answer/read-answer.ts'
import { readCall, wantsUsageChunk } from '../request/read-call.ts'
import { readHeaders } from '../request/read-headers.ts'
import { writeCall } from '../request/write-call.ts'
import { findRoute } from '../routes/find-route.ts'
import { ceilingOf } from '../terms/ceiling.ts'
import { costOf } from '../terms/cost.ts'
import { fitCall } from '../terms/fit-call.ts'
import { driveAnswer } from '../testing/drive-answer.ts'
import { answerDemo, planDemo } from './answer-demo.ts'
import { DEMO_MODEL, DEMO_NOTICE, DEMO_TERMS } from './demo-model.ts'

/** The whole path of a call but for sockets, and what it used. */
function door() {
  const used: unknown[] = []
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const request = new Request(input, init)
    const { pathname, search } = new URL(request.url)
    const asked = { method: request.method, target: pathname + search, headers: Object.fromEntries(request.headers) }
    const route = findRoute(asked)
    if (!route || route.name === 'models' || route.name === 'model' || route.name === 'health')
      throw new TypeError(`no route: ${asked.target}`)
    const call = fitCall(readCall(route.name, Buffer.from(await request.arrayBuffer())), DEMO_TERMS)
    readHeaders(asked.headers, route.protocol)
    const body = writeCall(call, DEMO_TERMS.upstreamModel)
    const ceiling = ceilingOf({ call, body }, DEMO_TERMS)
    const { kind, chunks } = answerDemo(planDemo(call), { callId: 'call_1', createdAt: 1_700_000_000 })
    const streamed = { name: call.name, callId: 'call_1', wantsUsageChunk: wantsUsageChunk(call) }
    const stream = new AnswerStream(streamed)
    const whole = kind === 'json' ? readAnswer(call.name, Buffer.concat(chunks)) : undefined
    const drive = () => [
      ...chunks.flatMap((chunk) => driveAnswer(stream.write(chunk), streamed)),
      ...driveAnswer(stream.end(), streamed),
    ]
    const out = whole ? [whole.replaced ?? Buffer.concat(chunks)] : drive()
    const { usage, isFinal } = whole ?? stream.meter
    if (usage !== 'missing') {
      expect(usage.input).toBeLessThanOrEqual(ceiling.inputTokens)
      expect(usage.output).toBeLessThanOrEqual(ceiling.outputTokens)
      used.push({ isFinal, cost: costOf(usage, DEMO_TERMS), output: usage.output })
    }
    return new Response(Buffer.concat(out), { headers: answerHeaders(kind, 'call_1') })
  }
  const options = { apiKey: 'placeholder', maxRetries: 0, fetch }
  return { openai: new OpenAI(options), anthropic: new Anthropic(options), used }
}

const model = DEMO_MODEL
const messages = [{ role: 'user' as const, content: 'Hello, who are you?' }]
const SAID = `You said: "Hello, who are you?" ${DEMO_NOTICE}`
const WORDS = SAID.split(' ').length
const USED = [{ isFinal: true, cost: 0, output: WORDS }]

describe('the demo answers unmodified clients', () => {
  it('in chat completions', async () => {
    const { openai, used } = door()
    const answer = await openai.chat.completions.create({ model, messages })
    expect(answer).toMatchObject({
      model,
      created: 1_700_000_000,
      choices: [{ message: { content: SAID }, finish_reason: 'stop' }],
    })
    expect(answer.usage?.completion_tokens).toBe(WORDS)
    expect(used).toEqual(USED)
  })

  it('in chat completions as a stream, whose chunks all have a choice', async () => {
    const { openai, used } = door()
    const stream = await openai.chat.completions.create({ model, messages, stream: true })
    const deltas = await Array.fromAsync(stream, ({ choices: [first] }) => first?.delta.content ?? '')
    expect(deltas.length).toBeGreaterThan(WORDS)
    expect(deltas.join('')).toBe(SAID)
    expect(used).toEqual(USED)
  })

  it('in chat completions with usage for a client that wants it', async () => {
    const { openai } = door()
    const stream = openai.chat.completions.stream({ model, messages, stream_options: { include_usage: true } })
    const answer = await stream.finalChatCompletion()
    expect(answer.choices[0]?.message.content).toBe(SAID)
    expect(answer.usage?.completion_tokens).toBe(WORDS)
  })

  it('in several choices', async () => {
    const { openai, used } = door()
    const { choices } = await openai.chat.completions.create({ model, messages, n: 3 })
    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([0, 1, 2].map((at) => [at, SAID]))
    expect(used).toEqual([{ isFinal: true, cost: 0, output: 3 * WORDS }])
  })

  it('in JSON, where JSON was asked for', async () => {
    const { openai } = door()
    const response_format = { type: 'json_object' } as const
    const answer = await openai.chat.completions.create({ model, messages, response_format })
    expect(JSON.parse(answer.choices[0]?.message.content ?? '')).toEqual({ demo: SAID })
  })

  it('in responses', async () => {
    const { openai, used } = door()
    const answer = await openai.responses.create({ model, input: messages })
    expect(answer).toMatchObject({ status: 'completed', output_text: SAID, usage: { output_tokens: WORDS } })
    expect((await openai.responses.create({ model, input: 'Hello, who are you?' })).output_text).toBe(SAID)
    expect(used).toEqual([...USED, ...USED])
  })

  it('in responses as a stream', async () => {
    const { openai, used } = door()
    const stream = openai.responses.stream({ model, input: messages })
    const types = await Array.fromAsync(stream, ({ type }) => type)
    expect(types.filter((type) => type === 'response.output_text.delta').length).toBe(WORDS)
    expect(await stream.finalResponse()).toMatchObject({ status: 'completed', output_text: SAID })
    expect(used).toEqual(USED)
  })

  it('in messages', async () => {
    const { anthropic, used } = door()
    const answer = await anthropic.messages.create({ model, max_tokens: 1000, messages })
    expect(answer).toMatchObject({
      model,
      content: [{ text: SAID }],
      stop_reason: 'end_turn',
      usage: { output_tokens: WORDS },
    })
    expect(used).toEqual(USED)
  })

  it('in messages as a stream', async () => {
    const { anthropic, used } = door()
    const answer = await anthropic.messages.stream({ model, max_tokens: 1000, messages }).finalMessage()
    expect(answer).toMatchObject({
      content: [{ text: SAID }],
      stop_reason: 'end_turn',
      usage: { output_tokens: WORDS },
    })
    expect(used).toEqual(USED)
  })

  it('with a count of tokens', async () => {
    const { anthropic, used } = door()
    expect(await anthropic.messages.countTokens({ model, messages })).toMatchObject({ input_tokens: 22 })
    expect(used).toEqual([])
  })

  it('with embeddings, which are the same for the same text', async () => {
    const { openai, used } = door()
    const { data } = await openai.embeddings.create({ model, input: ['a', 'b', 'a'] })
    const [a, b, again] = data.map(({ embedding }) => embedding)
    expect([a?.length, b?.length]).toEqual([64, 64])
    expect(again).toEqual(a)
    expect(b).not.toEqual(a)
    expect(Math.hypot(...(a ?? []))).toBeCloseTo(1)
    const floats = await openai.embeddings.create({ model, input: 'a', encoding_format: 'float', dimensions: 8 })
    expect(floats.data[0]?.embedding.length).toBe(8)
    expect(used).toMatchObject([{ cost: 0 }, { cost: 0 }])
  })
})

describe('the demo', () => {
  it.each(['chat', 'responses', 'messages'] as const)('stops at the bound on an answer in %s', async (name) => {
    const { openai, anthropic, used } = door()
    const answer = await {
      chat: async () => openai.chat.completions.create({ model, messages, max_tokens: 3 }),
      responses: async () => openai.responses.create({ model, input: messages, max_output_tokens: 3 }),
      messages: async () => anthropic.messages.create({ model, max_tokens: 3, messages }),
    }[name]()
    expect(used).toEqual([{ isFinal: true, cost: 0, output: 3 }])
    expect(JSON.stringify(answer)).toMatch(/"length"|"incomplete"|"max_tokens"/)
  })

  it('says the last words of the user, and not many of them', async () => {
    const { anthropic } = door()
    const said = async (content: string) => {
      const answer = await anthropic.messages.create({
        model,
        max_tokens: 1000,
        messages: [...messages, { role: 'user', content }],
      })
      return answer.content[0]?.type === 'text' ? answer.content[0].text : ''
    }
    expect(await said('again\n\nagain')).toBe(`You said: "again again" ${DEMO_NOTICE}`)
    expect(await said('x'.repeat(10_000))).toBe(`You said: "${'x'.repeat(200)}…" ${DEMO_NOTICE}`)
    expect(await said(' ')).toBe(DEMO_NOTICE)
  })

  it('refuses embeddings that would be large', async () => {
    const { openai } = door()
    const create = async (params: object) => openai.embeddings.create({ model, input: 'a', ...params })
    const message = 'airlock/demo has at most 256 dimensions and takes at most 256 inputs.'
    for (const params of [{ dimensions: 257 }, { input: Array.from({ length: 257 }, () => 'a') }])
      await expect(create(params)).rejects.toMatchObject({ cause: { code: 'invalid_request', message } })
  })
})
