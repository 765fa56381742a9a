import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

const HAIKU = fileURLToPath(new URL('../../examples/haiku-agent.py', import.meta.url))

let server: BorrowedServer
beforeAll(async () => {
  server = await borrowServer()
})
afterAll(async () => server?.giveBack())

async function airlock(argv: readonly string[], stdin = '') {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.adminKey }
  const running = new CliProcess(argv, { env })
  running.child.stdin.end(stdin)
  return running.ended
}

describe('airlock ask', () => {
  it('prints the answer, and its run is there afterwards', async () => {
    const { stdout, code } = await airlock(['ask', 'sandbox:agent', 'Say', 'hello.'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^You said: "Say hello\."[^]*\n$/)])
    const listed = JSON.parse((await airlock(['agent-run', 'ls', '--json'])).stdout) as { id: string; graph: string }[]
    expect(listed[0]).toMatchObject({ graph: 'sandbox:agent' })
    const id = listed[0]?.id ?? ''
    expect((await airlock(['agent-run', 'events', id])).stdout).toBe(stdout)
    expect((await airlock(['agent-run', 'inspect', id])).stdout).toContain('succeeded')
    expect((await airlock(['usage', '--run', id, '--by', 'model'])).stdout).toContain('airlock/demo')
  })

  it('takes what is piped in, and says each event as a line of JSON', async () => {
    const { stdout } = await airlock(['ask', '--json', 'sandbox:agent'], 'piped')
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { event: string }).event)
    expect([events[0], events.at(-2), events.at(-1)]).toEqual(['started', 'assistant_final', 'done'])
  })

  it('fails with the code of the run', async () => {
    const { stderr, code } = await airlock(['ask', '--calls', '0', 'sandbox:agent', 'hello'])
    expect([code, stderr]).toEqual([4, expect.stringContaining('(budget_exhausted)')])
    expect((await airlock(['ask', 'sandbox:absent', 'hello'])).code).toBe(5)
  })
})

describe('an agent of your own', () => {
  it('is put into the catalog, answers, and is taken out again', async () => {
    const put = ['catalog', 'put', '--model', 'airlock/demo', '--description', 'Haiku.', 'sandbox:haiku', HAIKU]
    expect(await airlock(put)).toMatchObject({ code: 0, stdout: 'sandbox:haiku\n' })
    expect((await airlock(['catalog'])).stdout).toMatch(/sandbox:haiku +1 +tenant +base +airlock\/demo +Haiku\./)
    expect((await airlock(['catalog', 'inspect', 'sandbox:haiku'])).stdout).toContain('python3 job.py')
    const id = (await airlock(['ask', '-d', 'sandbox:haiku', 'What is a cgroup?'])).stdout.trim()
    expect((await airlock(['agent-run', 'events', id])).stdout).toContain('What is a cgroup?')
    expect((await airlock(['agent-run', 'logs', id])).stdout).toBe('asking airlock/demo\n')
    expect(await airlock(['catalog', 'rm', 'sandbox:haiku'])).toMatchObject({ code: 0 })
  })
})
