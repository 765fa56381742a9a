import { setImmediate as nextTurn } from 'node:timers/promises'
import { readFileSync } from 'node:fs'
import { DEMO_MODEL, type ServedModel } from '@airlock/contract'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { judgeEvent } from '../answer/judge-event.ts'
import { UsageMeter } from '../usage/usage-meter.ts'
import { Preparation } from './preparation.ts'
import { type CallToPrepare, prepareCall } from './prepare-call.ts'

const PROGRAM = readFileSync(new URL('../../../../../dist/doors/prepare.js', import.meta.url), 'utf8')
const SMALL: ServedModel = {
  name: 'small',
  aliases: ['s'],
  upstream: { name: 'main', kind: 'openai', model: 'vendor/small' },
  contextWindow: 100_000,
  maxOutput: 1000,
  price: { input: 1_000_000, output: 2_000_000, cacheRead: 0, cacheWrite: 0 },
}
const models = [DEMO_MODEL, SMALL]

let preparation: Preparation
beforeEach(() => {
  preparation = new Preparation(PROGRAM)
})
afterEach(async () => preparation.close())

const HOLDER = { tenant: 'acme', sandbox: 'sbx_1' }
const prepareIn = async (one: Preparation, call: CallToPrepare) => one.prepare(call, HOLDER)
const prepare = async (call: CallToPrepare) => prepareIn(preparation, call)

/** Time passes while a thread reads, however fast this machine is. Answers the error. */
async function outOfTime(work: () => Promise<unknown>): Promise<unknown> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const failed = work().catch((error: unknown) => error)
    while (vi.getTimerCount() === 0) await nextTurn()
    vi.advanceTimersByTime(60_000)
    return await failed
  } finally {
    vi.useRealTimers()
  }
}

const chat = (body: object) => {
  const bytes = Buffer.from(JSON.stringify({ model: 's', messages: [{ role: 'user', content: 'hi' }], ...body }))
  return { name: 'chat' as const, bytes, models }
}

it.each([
  ['small', 'hi'],
  ['large', 'x'.repeat(1_000_000)],
])('a %s body becomes the same call, in a thread or not', async (_, content) => {
  const call = chat({ messages: [{ role: 'user', content }], user: 'other' })
  const prepared = await prepare(call)
  expect(prepared).toEqual(prepareCall(call))
  expect(prepared).toMatchObject({ route: 'chat', asked: 's', maxOutputTokens: 1000, demo: null })
  const body = JSON.parse(prepared.body.toString()) as object
  expect(body).toEqual({ model: 'vendor/small', messages: [{ role: 'user', content }], max_completion_tokens: 1000 })
})

it('every body above one KiB is read in a thread', async () => {
  const refusal = { error: { code: 'not_ready', message: 'read in a thread', hint: '' } }
  const program = `import { parentPort } from 'node:worker_threads'
    parentPort.on('message', () => parentPort.postMessage(${JSON.stringify(refusal)}))`
  const inThreads = new Preparation(program)
  const { length } = chat({ stop: '' }).bytes
  try {
    await prepareIn(inThreads, chat({ stop: 'x'.repeat(1024 - length) }))
    const above = prepareIn(inThreads, chat({ stop: 'x'.repeat(1025 - length) }))
    await expect(above).rejects.toThrow('read in a thread')
  } finally {
    await inThreads.close()
  }
})

it('the plan of the demo is short whatever the call is', async () => {
  const call = chat({ model: 'airlock/demo', stop: 'x'.repeat(100_000) })
  const { demo } = await prepare(call)
  expect(demo).toMatchObject({ name: 'chat', said: { text: expect.stringContaining('You said: "hi"') } })
  expect(JSON.stringify(demo).length).toBeLessThan(2000)
})

it('a refusal of a large body is that of a small one', async () => {
  const refused = { code: 'invalid_request', message: expect.stringContaining('"a" is not a field') }
  await expect(prepare(chat({ a: 1 }))).rejects.toMatchObject(refused)
  await expect(prepare(chat({ a: 'x'.repeat(100_000) }))).rejects.toMatchObject(refused)
})

it('a body that takes too long is refused, and the next call is answered', async () => {
  const impatient = new Preparation(PROGRAM)
  // A quick machine runs into the bound on memory first.
  const members = Array.from({ length: 3_000_000 }, (_, at) => `"k${at}":1`).join(',')
  const hostile = { name: 'chat' as const, bytes: Buffer.from(`{${members}}`), models }
  expect(await outOfTime(() => prepareIn(impatient, hostile))).toMatchObject({ code: 'body_too_large' })
  await prepareIn(impatient, chat({ stop: 'x'.repeat(100_000) }))
  await impatient.close()
})

it.each([
  ['a model that the sandbox may not name', { model: 'other' }, 'model_not_found'],
  ['a cache that the table has no price for', {}, 'invalid_request'],
])('%s is refused', async (what, body, code) => {
  const block = { type: 'text', text: 'hi', cache_control: { type: 'ephemeral', ttl: '1h' } }
  const messages = [{ role: 'user', content: [block] }]
  const upstream = { name: 'main', kind: 'anthropic' as const, model: 'm' }
  const call = what.includes('cache')
    ? {
        name: 'messages' as const,
        bytes: Buffer.from(JSON.stringify({ model: 'small', max_tokens: 10, messages })),
        models: [{ ...SMALL, upstream }],
      }
    : chat(body)
  await expect(prepare(call)).rejects.toMatchObject({ code })
})

const STREAMED = { name: 'chat' as const, callId: 'cal_1', wantsUsageChunk: false }
const LONG = 'x'.repeat(200_000)
const eventOf = (value: object, name = '') =>
  Buffer.from(`${name === '' ? '' : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`)

it.each([
  ['choices beside a long text', { choices: [{ index: 0, delta: { content: LONG }, finish_reason: 'stop' }] }],
  ['usage beside a long text', { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 }, text: LONG }],
  ['an event that is no object', [LONG]],
])('a long event with %s is read in a thread as it is here', async (_, value) => {
  const [here, there] = [new UsageMeter('chat'), new UsageMeter('chat')]
  const bytes = eventOf(value)
  const read = judgeEvent({ name: '', data: JSON.stringify(value) }, STREAMED)
  const judged = await preparation.judge(bytes, STREAMED, HOLDER)
  for (const { meter, metered } of [
    { meter: here, ...read },
    { meter: there, ...judged },
  ]) {
    meter.takeEvent({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
    meter.takeEvent(metered)
  }
  expect(judged).toMatchObject({ isEnd: read.isEnd, verdict: read.verdict })
  expect([there.usage, there.isFinal]).toEqual([here.usage, here.isFinal])
  expect(JSON.stringify(judged).length).toBeLessThan(1000)
})

it('a long response that failed keeps its text and loses what the provider said', async () => {
  const response = { usage: { input_tokens: 1, output_tokens: 2 }, output: LONG, error: { message: 'sk-canary' } }
  const bytes = eventOf({ type: 'response.failed', response }, 'response.failed')
  const { isEnd, verdict, metered } = await preparation.judge(bytes, { ...STREAMED, name: 'responses' }, HOLDER)
  const text = typeof verdict === 'string' ? verdict : Buffer.from(verdict).toString()
  expect(isEnd).toBe(true)
  expect(text).toContain(LONG)
  expect(text).not.toContain('canary')
  expect(metered).toMatchObject({ response: { usage: { output_tokens: 2 } } })
})

it('usage that is longer than any is not understood', async () => {
  const meter = new UsageMeter('messages')
  meter.takeEvent({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } })
  const bytes = eventOf({ type: 'message_delta', usage: { output_tokens: 9, more: LONG } })
  meter.takeEvent((await preparation.judge(bytes, { ...STREAMED, name: 'messages' }, HOLDER)).metered)
  expect(meter.usage).toBe('missing')
})

it('an answer that takes too long to read is broken, and the next one is read', async () => {
  const impatient = new Preparation(PROGRAM)
  const members = Array.from({ length: 3_000_000 }, (_, at) => `"k${at}":1`).join(',')
  const hostile = Buffer.from(`data: {${members}}\n\n`)
  expect(await outOfTime(() => impatient.judge(hostile, STREAMED, HOLDER))).toMatchObject({ code: 'upstream_broken' })
  const whole = Buffer.from(
    JSON.stringify({ choices: [], text: LONG, usage: { prompt_tokens: 1, completion_tokens: 2 } }),
  )
  expect(await impatient.readAnswer('chat', whole, HOLDER)).toMatchObject({ replaced: null, usage: { output: 2 } })
  await impatient.close()
})
