import { readFileSync } from 'node:fs'
import { DEMO_MODEL, type ServedModel } from '@airlock/contract'
import { afterEach, beforeEach, expect, it } from 'vitest'
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

it('the demo keeps the call that it answers', async () => {
  const call = chat({ model: 'airlock/demo', stop: 'x'.repeat(100_000) })
  expect((await prepare(call)).demo).toMatchObject({ name: 'chat' })
})

it('a refusal of a large body is that of a small one', async () => {
  const refused = { code: 'invalid_request', message: expect.stringContaining('"a" is not a field') }
  await expect(prepare(chat({ a: 1 }))).rejects.toMatchObject(refused)
  await expect(prepare(chat({ a: 'x'.repeat(100_000) }))).rejects.toMatchObject(refused)
})

it('a body that takes too long is refused, and the next call is answered', async () => {
  const impatient = new Preparation(PROGRAM, 2_500)
  // A quick machine runs into the bound on memory first.
  const members = Array.from({ length: 3_000_000 }, (_, at) => `"k${at}":1`).join(',')
  const hostile = { name: 'chat' as const, bytes: Buffer.from(`{${members}}`), models }
  await expect(prepareIn(impatient, hostile)).rejects.toMatchObject({ code: 'body_too_large' })
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
