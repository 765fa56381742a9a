import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { answerOf, ModelUpstream } from '../support/model-upstream.ts'
import { requires } from '../support/requires.ts'
import { startModelServer } from './support.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/ask-model.py', import.meta.url))

let upstream: ModelUpstream
let server: Awaited<ReturnType<typeof startModelServer>>
beforeAll(async () => {
  upstream = await ModelUpstream.start()
  server = await startModelServer(upstream.port)
}, 240_000)
afterAll(async () => {
  await server?.stop()
  server?.clean()
  await upstream?.stop()
})

async function airlock(...argv: string[]) {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.adminKey }
  const running = new CliProcess(argv, { env })
  running.child.stdin.end()
  return running.ended
}

const chatOf = (content: string, completion: number) =>
  answerOf(
    '200 OK',
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion },
    }),
    ['content-type: application/json'],
  )

describe('airlock llm', requires('root'), () => {
  it('shows upstreams with the state of their keys, and what is under way', async () => {
    const { stdout } = await airlock('llm', 'status')
    expect(stdout).toMatch(/litellm +litellm +1 +present +closed/)
    expect(stdout).toContain('0 calls under way, $0 reserved for them')
    const developer = new Airlock({ url: server.url, apiKey: server.developerKey })
    const status = await developer.models.status()
    expect(status.upstreams.map(({ name, lastStatus, calls }) => ({ name, lastStatus, calls }))).toEqual([
      { name: 'litellm', lastStatus: null, calls: null },
      { name: 'openai', lastStatus: null, calls: null },
    ])
  })

  it('lists the demo beside the models of the upstreams', async () => {
    const { stdout } = await airlock('llm', 'models', '--json')
    expect(JSON.parse(stdout).map(({ name }: { name: string }) => name)).toEqual(['airlock/demo', 'small', 'gpt'])
  })

  it('tests one model through a sandbox: answer, tokens and price', async () => {
    await upstream.next(chatOf('ready', 5))
    const { stdout, code } = await airlock('llm', 'test', 'small', '--json')
    expect(JSON.parse(stdout)).toMatchObject([
      { model: 'small', ok: true, status: 200, answer: 'ready', inputTokens: 10, outputTokens: 5, microDollars: 105 },
    ])
    expect(code).toBe(0)
    const { requests } = await upstream.seen()
    expect(JSON.parse(requests.at(-1)?.body ?? '')).toMatchObject({ max_tokens: 16 })
  })

  it('says when a model ignores the bound on its output', async () => {
    await upstream.next(chatOf('much more', 40))
    const { stdout, code } = await airlock('llm', 'test', 'gpt')
    expect(stdout).toContain('wrote too much')
    expect(code).toBe(1)
  })

  it('calls every model only after a yes', async () => {
    const before = (await upstream.seen()).requests.length
    const { stderr, code } = await airlock('llm', 'test')
    expect(stderr).toContain('airlock llm test --all')
    expect([code, (await upstream.seen()).requests.length]).toEqual([2, before])
  })

  it('an unknown model is refused with what to type, in the test and at a creation', async () => {
    expect((await airlock('llm', 'test', 'gpt-99')).stderr).toContain('airlock llm models')
    const { stderr, code } = await airlock('create', '--model', 'gpt-99')
    expect(stderr).toContain('This server has no model gpt-99.')
    expect(stderr).toContain('airlock llm models')
    expect(code).not.toBe(0)
  })

  it('the example of the README asks the demo with the standard library', async () => {
    const { stdout, stderr } = await airlock('run', '--model', 'airlock/demo', EXAMPLE)
    expect(stdout + stderr).toMatch(/You said: "Say hello\." This is airlock\/demo/)
  })
})

describe('airlock template build', requires('root'), () => {
  it('takes models and caps on their calls, which hold in sandboxes of the template', async () => {
    const refused = await airlock('template', 'build', 'capped', '--model-calls', '1')
    expect(refused.stderr).toContain('--model-calls caps calls of models, and no model is named.')
    await airlock('template', 'build', 'capped', '--model', 'airlock/demo', '--model-calls', '1')
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const { models, modelLimits } = await admin.templates.get('capped')
    expect({ models, modelLimits }).toEqual({ models: ['airlock/demo'], modelLimits: { calls: 1 } })
    const box = await admin.sandboxes.create({ template: 'capped' })
    const body = '{"model":"airlock/demo","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    const ask = `curl -s -o /dev/null -w '%{http_code} ' "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d '${body}'`
    expect((await box.run({ shell: `${ask}; ${ask}` })).stdout).toBe('200 402 ')
  })
})
