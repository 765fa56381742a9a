import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { answerOf, ModelUpstream } from '../support/model-upstream.ts'
import { startModelServer } from './support.ts'

/** Many calls at once from inside; prints how many had which status, and one refusal. */
const PROGRAM = `
import collections, json, os, sys, threading, urllib.error, urllib.request
model, count, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
seen, errors = collections.Counter(), []
def ask():
    body = {'model': model, 'max_tokens': most, 'messages': [{'role': 'user', 'content': 'hi'}]}
    headers = {'content-type': 'application/json'}
    request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', json.dumps(body).encode(), headers)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        answer = error
    text = answer.read().decode()
    if answer.status != 200: errors.append({'body': json.loads(text)['error'], 'retry': answer.headers.get('x-should-retry')})
    seen[answer.status] += 1
threads = [threading.Thread(target=ask) for _ in range(count)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps({'statuses': seen, 'error': errors[0] if errors else None}))
`

let upstream: ModelUpstream
let server: Awaited<ReturnType<typeof startModelServer>>
let admin: Airlock
let user: Airlock
beforeAll(async () => {
  upstream = await ModelUpstream.start()
  server = await startModelServer(upstream.port)
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  user = new Airlock({ url: server.url, apiKey: server.developerKey })
}, 240_000)
afterAll(async () => {
  await server?.stop()
  server?.clean()
  await upstream?.stop()
})

interface Told {
  readonly statuses: Readonly<Record<string, number>>
  readonly error: {
    readonly body: { readonly code: string; readonly message: string }
    readonly retry: string | null
  } | null
}

async function ask(box: Sandbox, model: string, count: number, most = 20): Promise<Told> {
  const { stdout, stderr } = await box.run(['python3', '-c', PROGRAM, model, `${count}`, `${most}`])
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Told
}

const answer = answerOf(
  '200 OK',
  JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  }),
  ['content-type: application/json'],
)

describe('caps on calls of models', requires('root'), () => {
  it('a sandbox never makes more calls than its cap, with 50 at once', async () => {
    await using box = await user.sandboxes.create({
      models: ['airlock/demo'],
      modelLimits: { calls: 7, concurrentCalls: 50 },
    })
    const { statuses, error } = await ask(box, 'airlock/demo', 50)
    expect(statuses['200']).toBe(7)
    expect(error?.body).toMatchObject({ code: expect.stringMatching(/^budget_/) })
    expect(error).toMatchObject({ retry: 'false' })
    const { items } = await user.usage.report({ sandbox: box.id, by: 'model' })
    expect(items).toMatchObject([{ model: 'airlock/demo', calls: 7 }])
  })

  it('dollars of a sandbox bound what the upstream is asked for at all', async () => {
    const before = (await upstream.seen()).requests.length
    // The worst case of such a call is $0.023: 1000 tokens of output, and every byte of input as a token.
    await using box = await user.sandboxes.create({ models: ['small'], modelLimits: { dollars: 0.024 } })
    for (let call = 0; call < 3; call++) await upstream.next(answer)
    const { statuses, error } = await ask(box, 'small', 1, 1000)
    expect([statuses, error]).toEqual([{ '200': 1 }, null])
    const more = await ask(box, 'small', 1, 2000)
    expect(more.error).toBeNull()
    const { items } = await user.usage.report({ sandbox: box.id, by: 'model' })
    expect(items).toMatchObject([{ calls: 2, inputTokens: 20, outputTokens: 10, microDollars: 210 }])
    expect((await upstream.seen()).requests.length - before).toBe(2)
    const poor = await user.sandboxes.create({ models: ['small'], modelLimits: { dollars: 0.001 } })
    const refused = await ask(poor, 'small', 1, 1000)
    expect(refused.error?.body.message).toContain('The sandbox may spend $0.001')
    expect((await upstream.seen()).requests.length - before).toBe(2)
    await poor.terminate()
  })

  it('tokens and calls of a day hold for an agent, and the refusal says whose they are', async () => {
    await admin.agents.register('thrifty')
    await admin.agents.approve('thrifty')
    await admin.budgets.setAgent('thrifty', { modelCallsPerDay: 2 })
    await using box = await admin.sandboxes.create({ agent: 'thrifty', models: ['airlock/demo'] })
    const { statuses, error } = await ask(box, 'airlock/demo', 10)
    expect(statuses['200']).toBe(2)
    expect(error?.body.message).toContain('The agent thrifty may make 2 calls of models a day')
    expect((await admin.budgets.ofAgent('thrifty')).spent).toMatchObject({ modelCalls: 2 })
    await admin.budgets.setAgent('thrifty', { modelCallsPerDay: null, modelTokensPerDay: 10 })
    const tokens = await ask(box, 'airlock/demo', 1)
    expect(tokens.error?.body.message).toContain('The agent thrifty may use 10 tokens a day')
  })

  it('a sandbox reaches the models that it was created with, and no other', async () => {
    await using box = await user.sandboxes.create({ models: ['small'] })
    const { stdout } = await box.run({ shell: 'curl -s "$OPENAI_BASE_URL/models"' })
    expect(JSON.parse(stdout).data.map(({ id }: { id: string }) => id)).toEqual(['small'])
    const refused = await ask(box, 'gpt', 1)
    expect(refused.error?.body.code).toBe('model_not_found')
    await using without = await user.sandboxes.create()
    expect(without.data.doors).toEqual(['control'])
    expect((await without.run({ shell: 'echo "${OPENAI_BASE_URL:-none}"' })).stdout).toBe('none\n')
  })

  it('a rule that asks is answered at once with the approval, and one approval lets one call pass', async () => {
    await admin.policies.put({
      name: 'asks',
      rules: [
        { id: 'gpt', kind: 'model', effect: 'ask', risk: 'low', reason: 'It is new.', match: { models: ['gpt'] } },
      ],
    })
    await using box = await user.sandboxes.create({ models: ['gpt'] })
    const before = (await upstream.seen()).requests.length
    const { error } = await ask(box, 'gpt', 1)
    const [, approval = ''] = /airlock approvals approve (apr_\w+)/.exec(JSON.stringify(error)) ?? []
    expect(approval).not.toBe('')
    await admin.approvals.approve(approval, { scope: 'once' })
    await upstream.next(answer)
    expect((await ask(box, 'gpt', 1)).statuses).toEqual({ '200': 1 })
    expect((await ask(box, 'gpt', 1)).error?.body.code).toBe('approval_required')
    expect((await upstream.seen()).requests.length - before).toBe(1)
    await admin.policies.remove('asks')
  })
})
