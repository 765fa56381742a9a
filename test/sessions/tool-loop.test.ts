import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { answerOf, ModelUpstream } from '../support/model-upstream.ts'
import { PYTHON } from '../support/python.ts'
import { requires } from '../support/requires.ts'

// The programs of docs/your-agent.md, with a model that answers by a script.

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url))

let server: BorrowedServer
let upstream: ModelUpstream
beforeAll(async () => {
  server = await borrowServer()
})
afterAll(async () => {
  await upstream?.stop()
  await server?.giveBack()
})

async function run(command: readonly string[], task: string) {
  const env = {
    PATH: process.env['PATH'] ?? '',
    PYTHONPATH: `${PYTHON}/src`,
    PYTHONDONTWRITEBYTECODE: '1',
    AIRLOCK_URL: server.url,
    AIRLOCK_API_KEY: server.developerKey,
    OPENAI_BASE_URL: `http://127.0.0.1:${upstream.port}/v1`,
    OPENAI_API_KEY: 'a-key',
    MODEL: 'scripted',
    TEMPLATE: 'base',
  }
  const running = new CliProcess([task], { env, command })
  running.child.stdin.end()
  return running.ended
}

const choiceOf = (message: object) =>
  answerOf('200 OK', JSON.stringify({ id: 'c', object: 'chat.completion', choices: [{ index: 0, message }] }), [
    'content-type: application/json',
  ])
const callOf = (id: string, code: string, name = 'run_code') =>
  choiceOf({
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify({ code }) } }],
  })

interface Asked {
  readonly model: string
  readonly messages: readonly { readonly role: string; readonly content: string }[]
}

describe.each([
  { name: 'in TypeScript', command: [process.execPath, example('tool-loop.ts')] },
  { name: 'in Python', command: ['python3', example('tool-loop.py')] },
])('an agent loop $name', { ...requires('root'), ...requires('python3') }, ({ command }) => {
  it('gives the model what its code printed, failures too, and remembers between calls', async () => {
    await upstream?.stop()
    upstream = await ModelUpstream.start()
    await upstream.next(callOf('1', 'x = 6\nprint("x is", x)'))
    await upstream.next(callOf('2', 'x * 7'))
    await upstream.next(callOf('3', 'x / 0'))
    await upstream.next(callOf('4', '', 'rm_rf'))
    await upstream.next(choiceOf({ role: 'assistant', content: 'It is 42.' }))
    expect(await run(command, 'What is x times 7?')).toEqual({ code: 0, stdout: 'It is 42.\n', stderr: '' })

    const { requests } = await upstream.seen()
    const asked: readonly Asked[] = requests.map(({ body }) => JSON.parse(body))
    expect(asked).toHaveLength(5)
    expect(asked[0]).toMatchObject({ model: 'scripted', messages: [{ role: 'user', content: 'What is x times 7?' }] })
    const answers = asked[4]?.messages.filter(({ role }) => role === 'tool').map(({ content }) => content) ?? []
    expect(answers.slice(0, 2)).toEqual(['x is 6\n', '42'])
    expect(answers[2]).toContain('ZeroDivisionError: division by zero')
    expect(answers[3]).toBe('There is no such tool.')
  })
})
