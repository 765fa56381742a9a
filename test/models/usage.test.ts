import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { answerOf, ModelUpstream } from '../support/model-upstream.ts'
import { requires } from '../support/requires.ts'
import { startModelServer } from './support.ts'

let upstream: ModelUpstream
let server: Awaited<ReturnType<typeof startModelServer>>
let user: Airlock
let box: Sandbox
beforeAll(async () => {
  upstream = await ModelUpstream.start()
  server = await startModelServer(upstream.port)
  user = new Airlock({ url: server.url, apiKey: server.developerKey })
  box = await user.sandboxes.create({ models: ['small', 'gpt', 'airlock/demo'] })
}, 240_000)
afterAll(async () => {
  await server?.stop()
  server?.clean()
  await upstream?.stop()
})

const answerWith = (usage: object | undefined) =>
  answerOf(
    '200 OK',
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'a secret word' }, finish_reason: 'stop' }],
      ...(usage === undefined ? {} : { usage }),
    }),
    ['content-type: application/json'],
  )

async function ask(model: string): Promise<string> {
  const body = JSON.stringify({ model, max_tokens: 20, messages: [{ role: 'user', content: 'a private question' }] })
  const shell = `curl -s "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d '${body}'`
  return (await box.run({ shell })).stdout
}

async function airlock(...argv: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.adminKey }
  const running = new CliProcess(argv, { env })
  running.child.stdin.end()
  return (await running.ended).stdout
}

describe('the ledger of model calls', requires('root'), () => {
  it('has tokens, money and estimates of each call, by model, sandbox and day, as table and CSV', async () => {
    const cached = { cached_tokens: 4 }
    await upstream.next(answerWith({ prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: cached }))
    expect(await ask('small')).toContain('a secret word')
    await upstream.next(answerWith(undefined))
    await ask('gpt')
    await ask('airlock/demo')
    const { items } = await user.usage.report({ by: 'model', sandbox: box.id })
    expect(items).toMatchObject([
      { model: 'airlock/demo', calls: 1, estimatedCalls: 0, microDollars: 0 },
      { model: 'gpt', calls: 1, estimatedCalls: 1, inputTokens: 0, outputTokens: 0, microDollars: expect.any(Number) },
      { model: 'small', calls: 1, inputTokens: 6, outputTokens: 5, cacheReadTokens: 4, microDollars: 95 },
    ])
    // Without a report the call is charged the most that it could cost.
    expect(items[1]?.microDollars).toBeGreaterThan(300)
    const [bySandbox] = (await user.usage.report({ by: 'sandbox', sandbox: box.id })).items
    expect(bySandbox).toMatchObject({ sandbox: box.id, day: null, model: null, calls: 3, estimatedCalls: 1 })
    const [byDay] = (await user.usage.report({ by: 'day' })).items
    expect(byDay).toMatchObject({ day: expect.stringMatching(/^\d{4}-/), agent: null, calls: 3 })
    expect(await airlock('usage', '--by', 'model', '--since', '1d')).toMatch(/gpt +1 \(~1\) +0 +0/)
    const csv = await airlock('usage', '--by', 'model', '--csv')
    expect(csv.split(/\r?\n/).find((line) => line.includes(',small,'))).toContain(',1,0,6,5,4,0,95,0.000095')
  })

  it('goes with one pair of records for each call, which have sizes and cost and no words', async () => {
    const records = await airlock('audit', 'ls', '--sandbox', box.id, '--point', 'model.call', '--json')
    const calls = JSON.parse(records) as readonly {
      readonly status: string
      readonly payload: { readonly call: string }
    }[]
    const pairs = Object.groupBy(calls, ({ payload }) => payload.call)
    const statuses = Object.values(pairs).map((pair) =>
      pair?.map(({ status }) => status).toSorted((a, b) => a.localeCompare(b)),
    )
    expect(statuses).toEqual([
      ['done', 'requested'],
      ['done', 'requested'],
      ['done', 'requested'],
    ])
    expect(records).toContain('"microDollars":95')
    expect(records).not.toMatch(/private question|secret word/)
    expect(await airlock('events', '--sandbox', box.id, '--point', 'model.call')).toMatch(
      /done .*model=small {2}microDollars=95/,
    )
  })

  it('shows to a key of another tenant nothing', async () => {
    const platform = new Airlock({ url: server.url, apiKey: server.adminKey })
    await platform.tenants.create('other')
    const { items } = await platform.usage.report({ tenant: 'other', by: 'model' })
    expect(items).toEqual([])
  })
})
