import { Airlock, type Run, type RunEvent, type RunOptions } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { PRELUDE, type ProgramName, PROGRAMS } from './programs.ts'

let server: BorrowedServer
let airlock: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await borrowServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  for (const [name, code] of Object.entries(PROGRAMS))
    await admin.catalog.put(`sandbox:${name}`, { code: PRELUDE + code, language: 'python' })
})
afterAll(async () => {
  for (const name of Object.keys(PROGRAMS)) await admin.catalog.remove(`sandbox:${name}`)
  await server?.giveBack()
})

const start = async (name: ProgramName | 'agent', text = 'hello', options?: RunOptions) =>
  airlock.runs.start(`sandbox:${name}`, text, options)

const eventsOf = async (run: Run, from = 0): Promise<RunEvent[]> => Array.fromAsync(run.events({ from }))
const deltas = (events: readonly RunEvent[]) =>
  events.map((event) => (event.event === 'text_delta' ? event.delta : '')).join('')
const finals = (events: readonly RunEvent[]) =>
  events.flatMap((event) => (event.event === 'assistant_final' ? [event.content] : []))
/** Events that have an id, each with it. */
const numbered = (events: readonly RunEvent[]) =>
  events.flatMap((event) => ('offset' in event && event.offset !== undefined ? [[event.offset, event] as const] : []))
const namesOf = (events: readonly RunEvent[]) => events.map(({ event }) => event)

/** What a run that failed says: its deltas, its one error, its one end. */
async function failureOf(run: Run) {
  const events = await eventsOf(run)
  const errors = events.flatMap((event) => (event.event === 'error' ? [event] : []))
  expect([errors.length, finals(events).length, namesOf(events).at(-1)]).toEqual([1, 0, 'done'])
  expect(run.data).toMatchObject({ state: 'failed', error: { code: errors[0]?.code, message: errors[0]?.message } })
  return { code: errors[0]?.code, message: errors[0]?.message, text: deltas(events) }
}

describe('sandbox:agent', () => {
  it('answers by the demo model without a key, and its deltas are its answer', async () => {
    const run = await start('agent', 'Say hello.')
    const events = await eventsOf(run)
    expect(finals(events)).toEqual([expect.stringMatching(/^You said: "Say hello\." This is airlock\/demo/)])
    expect(deltas(events)).toBe(finals(events)[0])
    expect(events.filter(({ event }) => event === 'text_delta').length).toBeGreaterThan(1)
    expect(namesOf(events).slice(-2)).toEqual(['assistant_final', 'done'])
    expect(run.data).toMatchObject({
      state: 'succeeded',
      error: null,
      graph: 'sandbox:agent',
      model: 'airlock/demo',
      result: { payloads: [{ text: finals(events)[0] }], meta: { error: null } },
    })
  })

  it('is billed to its run: result, usage and evidence agree', async () => {
    const run = await start('agent', 'Bill me.')
    await run.answer()
    const { sandbox } = (await run.refresh()).data
    await waitFor(async () => (await run.refresh()).data.usage.calls === 1, { signal: deadline(60_000), everyMs: 100 })
    const { usage } = run.data
    const [row] = (await admin.usage.report({ run: run.id, by: 'model' })).items
    expect(row).toMatchObject({ model: 'airlock/demo', calls: 1, inputTokens: usage.inputTokens })
    expect(row).toMatchObject({ outputTokens: usage.outputTokens, microDollars: usage.microDollars })
    const { items } = await admin.audit.events({ sandbox: sandbox ?? '', point: 'model.call', limit: 10 })
    expect(items.map(({ status }) => status).toSorted()).toEqual(['done', 'requested'])
  })
})

describe('events', () => {
  it('show tools and what the program thinks, in order', async () => {
    const events = await eventsOf(await start('tools'))
    expect(events.filter(({ event }) => !['started', 'done'].includes(event)).slice(-5)).toMatchObject([
      { event: 'status', phase: 'thinking', label: 'plan' },
      { event: 'tool_call_start', toolCallId: 'a', toolName: 'add', args: { x: 1, y: 2 } },
      { event: 'tool_call_result', toolCallId: 'a', result: 3, isError: false },
      { event: 'text_delta', delta: '3' },
      { event: 'assistant_final', content: '3' },
    ])
  })

  it('go on from any id, and are the same again', async () => {
    const run = await start('echo')
    const all = numbered(await eventsOf(run))
    expect(all.length).toBeGreaterThan(3)
    for (const [n, [offset]] of all.slice(0, -1).entries())
      expect(numbered(await eventsOf(run, offset))).toEqual(all.slice(n + 1))
  })

  it('of a program that does not stream are one delta and the answer', async () => {
    const events = await eventsOf(await start('whole'))
    expect([deltas(events), finals(events)]).toEqual(['all at once', ['all at once']])
  })

  it('are not broken by what the program prints, however much', async () => {
    const run = await start('prints')
    expect(await run.answer()).toBe('true')
    const log = await run.log()
    expect(log.stderr).toMatch(/^x+$/)
    expect(log.truncated).toBe(true)
  })

  it('of two runs at once never mix', async () => {
    const words = Array.from({ length: 4 }, (_, n) => `word-${n}`)
    const runs = await Promise.all(words.map(async (word) => start('echo', word)))
    const answers = await Promise.all(runs.map(async (run) => [await run.answer(), deltas(await eventsOf(run))]))
    expect(answers).toEqual(words.map((word) => [`You said: ${word}`, `You said: ${word}`]))
  })
})

describe('a hostile program', () => {
  it.each([
    ['garbage', 'line 2 is not JSON in UTF-8', 'before'],
    ['strange', 'line 1', ''],
    ['orphan', 'about no tool call that is open', ''],
    ['twice', 'comes after the result', 'one'],
    ['other', 'is another text than the deltas', 'streamed'],
    ['long', 'line 1 is too long', ''],
  ] as const)('that writes %s ends its run at once, with the line that was wrong', async (name, why, text) => {
    const failure = await failureOf(await start(name))
    expect(failure).toMatchObject({ code: 'graph_output_invalid', text })
    expect(failure.message).toContain(why)
  })

  it('that writes 100 MB of events is cut at the cap', async () => {
    const { code, text } = await failureOf(await start('flood'))
    expect(code).toBe('graph_output_invalid')
    expect(text.length).toBeLessThanOrEqual(1024 * 1024)
  })
})

describe('a run fails once, with a code', () => {
  it.each([
    ['silent', 'graph_no_answer', ''],
    ['crash', 'graph_failed', 'half'],
    ['refuses', 'graph_failed', 'half'],
  ] as const)('%s is %s', async (name, code, text) => {
    expect(await failureOf(await start(name))).toMatchObject({ code, text })
  })

  it('when a model is not allowed: the approval that it needs', async () => {
    const rule = { id: 'never', kind: 'model', effect: 'deny', risk: 'low', reason: 'Tested.' } as const
    await admin.policies.put({ name: 'no-demo', rules: [{ ...rule, match: { models: ['airlock/demo'] } }] })
    try {
      expect(await failureOf(await start('agent'))).toMatchObject({ code: 'policy_denied' })
    } finally {
      await admin.policies.remove('no-demo')
    }
  })

  it('when its budget is spent', async () => {
    const failure = await failureOf(await start('agent', 'hello', { budget: { calls: 0 } }))
    expect(failure.code).toBe('budget_exhausted')
  })

  it('when it takes too long: asked to end first, then ended', async () => {
    expect(await failureOf(await start('sleeps', '', { timeoutMs: 3000 }))).toMatchObject({
      code: 'timeout',
      text: 'begun',
    })
    expect(await failureOf(await start('deaf', '', { timeoutMs: 3000 }))).toMatchObject({
      code: 'timeout',
      text: 'begun',
    })
    const polite = await start('polite', '', { timeoutMs: 3000 })
    expect(await polite.answer()).toBe('begun, and ended in time')
  })
})

describe('a caller', () => {
  it('who leaves does not stop the run', async () => {
    const run = await start('slow')
    for await (const event of run) if (event.event === 'text_delta') break
    expect(await run.answer()).toMatch(/^0 1 .* 39 $/)
    expect((await run.refresh()).data.state).toBe('succeeded')
  })

  it('can cancel a run, and its sandbox ends', async () => {
    const run = await start('sleeps')
    for await (const event of run) if (event.event === 'text_delta') break
    await run.cancel()
    const events = await eventsOf(run)
    expect(events.at(-2)).toMatchObject({ event: 'error', code: 'run_canceled' })
    expect(run.data).toMatchObject({ state: 'canceled', cancelRequested: true })
    expect(server.processesOf(run.data.sandbox ?? '')).toEqual([])
  })

  it('gets one run for one key', async () => {
    const [a, b] = [
      await start('echo', 'x', { idempotencyKey: 'k' }),
      await start('echo', 'x', { idempotencyKey: 'k' }),
    ]
    expect(a.id).toBe(b.id)
    await expect(start('echo', 'y', { idempotencyKey: 'k' })).rejects.toMatchObject({ code: 'job_mismatch' })
  })

  it('finds runs apart from jobs', async () => {
    const run = await start('echo')
    await run.answer()
    expect((await airlock.runs.list()).items.map(({ id }) => id)).toContain(run.id)
    expect((await airlock.jobs.list()).items.map(({ id }) => id)).not.toContain(run.id)
    const context = JSON.parse(await (await start('context', '', { budget: { calls: 7 } })).answer()) as object
    expect(context).toMatchObject({ graph: 'sandbox:context', model: 'airlock/demo', budget: { calls: 7 } })
  })
})

describe('the catalog', () => {
  it('keeps what comes with the server, and knows no other name', async () => {
    await expect(admin.catalog.put('sandbox:agent', { argv: ['true'] })).rejects.toMatchObject({ code: 'graph_fixed' })
    await expect(start('absent' as 'agent')).rejects.toMatchObject({ code: 'graph_not_found' })
    await expect(airlock.catalog.put('sandbox:mine', { argv: ['true'] })).rejects.toMatchObject({ code: 'forbidden' })
    expect((await airlock.catalog.list())[0]).toMatchObject({ name: 'sandbox:agent', source: 'builtin', models: [] })
  })

  it('says which models a program runs with', async () => {
    await admin.catalog.put('sandbox:listed', { argv: ['true'], models: ['airlock/demo'] })
    try {
      const asked = airlock.runs.start('sandbox:listed', 'x', { model: 'gpt-5' })
      await expect(asked).rejects.toMatchObject({ code: 'model_not_found' })
    } finally {
      await admin.catalog.remove('sandbox:listed')
    }
  })

  it('is under the policy: a rule names a program as an action', async () => {
    const rule = { id: 'no-echo', kind: 'operation', effect: 'deny', risk: 'low', reason: 'Tested.' } as const
    const match = { points: ['run.submit'], actions: ['sandbox:e*'] }
    await admin.policies.put({ name: 'runs', rules: [{ ...rule, match }] })
    try {
      await expect(start('echo')).rejects.toMatchObject({ code: 'policy_denied' })
      expect(await (await start('whole')).answer()).toBe('all at once')
    } finally {
      await admin.policies.remove('runs')
    }
  })
})

describe('an unmodified client of OpenAI', () => {
  const client = () => new OpenAI({ baseURL: `${server.url}/v1/openai`, apiKey: server.developerKey })
  const hello = [{ role: 'user' as const, content: 'Say hello.' }]

  it('lists the catalog as models', async () => {
    const models = await Array.fromAsync(await client().models.list())
    expect(models.map(({ id }) => id)).toContain('sandbox:agent')
  })

  it('talks to an agent, whole and streamed', async () => {
    const whole = await client().chat.completions.create({ model: 'sandbox:agent', messages: hello, temperature: 0 })
    expect(whole.choices[0]?.message.content).toMatch(/^You said: "Say hello\."/)
    expect(whole.id).toMatch(/^run_/)
    const stream = await client().chat.completions.create({
      model: 'sandbox:agent',
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await Array.fromAsync(stream)
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
    expect(text).toBe(whole.choices[0]?.message.content)
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop')
    expect(chunks.at(-1)?.usage).toMatchObject({ total_tokens: expect.any(Number) })
  })

  it('gets errors that it knows, and does not ask twice', async () => {
    const before = (await airlock.runs.list({ limit: 200 })).items.length
    const ask = async (model: string, stream: boolean) => {
      const answer = await client().chat.completions.create({ model, messages: hello, stream })
      return stream ? Array.fromAsync(answer as AsyncIterable<unknown>) : answer
    }
    await expect(ask('sandbox:absent', false)).rejects.toMatchObject({ status: 404, code: 'graph_not_found' })
    await expect(ask('sandbox:crash', false)).rejects.toMatchObject({ status: 502, code: 'graph_failed' })
    await expect(ask('sandbox:crash', true)).rejects.toMatchObject({ code: 'graph_failed', type: 'server_error' })
    expect((await airlock.runs.list({ limit: 200 })).items.length).toBe(before + 2)
    const tools = [{ type: 'function' as const, function: { name: 'f' } }]
    const refused = client().chat.completions.create({ model: 'sandbox:agent', messages: hello, tools })
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
    const wrong = new OpenAI({ baseURL: `${server.url}/v1/openai`, apiKey: 'al_wrong' })
    await expect(wrong.models.list()).rejects.toMatchObject({ status: 401, type: 'authentication_error' })
  })
})
