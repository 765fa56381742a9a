import { TOOLS } from '@airlock/mcp'
import { Airlock, type AuditRecord } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import type { Client } from '@modelcontextprotocol/client'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { AIRLOCK, connectHttp, connectStdio, errorOf, fieldsOf, REVISIONS, stdioEnvironment } from './client.ts'

/** One red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'

const PICTURES = [
  {
    language: 'python',
    code: `import base64\nclass P:\n  def _repr_png_(self): return base64.b64decode("${PNG}")\nP()`,
  },
  { language: 'node', code: `display({ 'image/png': '${PNG}' })` },
] as const

const RUNTIMES = [
  {
    language: 'python',
    value: '6*7',
    throws: 'raise ValueError("no")',
    runs: 'import time\nprint("begun", flush=True)\ntime.sleep(600)',
  },
  {
    language: 'node',
    value: '6*7',
    throws: 'throw new RangeError("no")',
    runs: 'console.log("begun"); await new Promise((resolve) => setTimeout(resolve, 600000))',
  },
  { language: 'bash', value: 'echo 42', throws: 'false', runs: 'echo begun; sleep 600' },
] as const

let server: TestServer
let airlock: Airlock
beforeAll(async () => {
  // Without gVisor: who asks for the strict tier must hear that.
  server = await startServer({ env: { AIRLOCK_RUNSC: 'none' } })
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
})
afterAll(async () => server?.stop('SIGINT'))

const WAYS = REVISIONS.flatMap(({ revision, mode }) => [
  { way: `HTTP, ${revision}`, open: async (key?: string) => connectHttp(server, mode, key) },
  { way: `stdio, ${revision}`, open: async (key?: string) => (await connectStdio(server, mode, key)).client },
])

describe.each(WAYS)('tools over $way', requires('root'), ({ open }) => {
  let client: Client
  let sandbox: string
  const call = async (name: string, given: Readonly<Record<string, unknown>> = {}) =>
    client.callTool({ name, arguments: given })
  beforeAll(async () => {
    client = await open()
    sandbox = fieldsOf(await call('create_sandbox', { ttlMs: 600_000 })).id
  })
  afterAll(async () => client?.close())

  it('are all listed, with their schemas', async () => {
    const { tools } = await client.listTools()
    expect(tools).toEqual(TOOLS.map((tool) => tool.listing))
  })

  it('create, list and end sandboxes', async () => {
    const { id } = fieldsOf(await call('create_sandbox', { labels: { of: 'mcp' } }))
    const listed = fieldsOf(await call('list_sandboxes', { label: 'of=mcp' }))
    expect(listed.items.map((one) => one.id)).toEqual([id])
    const ended = fieldsOf(await call('terminate', { sandbox: id }))
    expect(ended).toEqual({ sandbox: id, state: 'stopped', endedAt: expect.any(String) as unknown })
    expect(errorOf(await call('run_command', { sandbox: id, shell: 'true' }))).toMatchObject({ code: 'sandbox_ended' })
  })

  it.each(['create_sandbox', 'create_session', 'run_code'])('%s asks for the tier that it was told', async (name) => {
    const given = { create_session: { runtime: 'bash' }, run_code: { language: 'bash', code: 'true' } }
    const other = Object.entries(given).find(([tool]) => tool === name)?.[1]
    const refused = errorOf(await call(name, { ...other, tier: 'strict' }))
    expect(refused).toMatchObject({ code: 'isolation_unavailable' })
  })

  it('run commands, bounded', async () => {
    const hello = await call('run_command', { sandbox, argv: ['cat'], stdin: 'hello' })
    expect(fieldsOf(hello)).toMatchObject({ exitCode: 0, stdout: 'hello', cutBytes: 0 })
    const long = fieldsOf(await call('run_command', { sandbox, shell: 'seq 1 100000' }))
    expect(long.stdout.length + long.cutBytes).toBeGreaterThan(588_895)
    expect(long.stdout).toMatch(/^1\n2\n[^]*\n\[\d+ bytes were cut here\]\n[^]*\n100000\n$/)
  })

  it('move files, and show a picture as a picture', async () => {
    await call('write_file', { sandbox, path: 'dot.png', content: PNG, encoding: 'base64' })
    const read = await call('read_file', { sandbox, path: '/workspace/dot.png' })
    expect(read.content).toEqual([{ type: 'image', data: PNG, mimeType: 'image/png' }])
    const listed = fieldsOf(await call('list_files', { sandbox }))
    expect(listed.entries.map((entry) => entry.name)).toContain('dot.png')
    const outside = errorOf(await call('read_file', { sandbox, path: '../etc/shadow' }))
    expect(outside).toMatchObject({ code: 'invalid_request', message: 'path: must not contain ".."' })
  })

  it("are nobody else's way to a sandbox", async () => {
    const foreign = `sbx_${'0'.repeat(26)}`
    expect(errorOf(await call('list_files', { sandbox: foreign }))).toMatchObject({ code: 'sandbox_not_found' })
  })

  it('stop a command in its sandbox when the call is cancelled', async () => {
    const caller = new AbortController()
    const running = client.callTool(
      { name: 'run_command', arguments: { sandbox, shell: 'echo begun; sleep 543 & sleep 543' } },
      { signal: caller.signal, onprogress: ({ message }) => message === 'begun' && caller.abort() },
    )
    await expect(running).rejects.toThrow()
    expect(caller.signal.aborted).toBe(true)
    await waitFor(() => (sleeping(sandbox, '543') ? undefined : true), { signal: deadline(100_000), everyMs: 50 })
  })

  it.each(PICTURES)('show a picture of $language as a picture', async ({ language, code }) => {
    const { content } = await call('run_code', { language, sandbox, code })
    expect(content).toContainEqual({ type: 'image', data: PNG, mimeType: 'image/png' })
  })

  describe.each(RUNTIMES)('for $language', ({ language, value, throws, runs }) => {
    it('run code in a session of its own, of which nothing is left', async () => {
      const before = await living()
      const ran = await call('run_code', { language, code: value, template: 'base' })
      expect(ran.content).toEqual([{ type: 'text', text: expect.stringMatching(/^42\n?$/) as unknown }])
      expect(fieldsOf(ran)).toMatchObject({ status: 'completed', error: null })
      expect(await living()).toEqual(before)
    })

    it('keep what a session remembers, and say what the code threw', async () => {
      const { id: session } = fieldsOf(await call('create_session', { runtime: language, sandbox }))
      await call('run_step', { session, code: language === 'bash' ? 'x=5' : 'x = 5' })
      const seen = await call('run_code', { language, session, code: language === 'bash' ? 'echo $x' : 'x' })
      expect(seen.content).toEqual([{ type: 'text', text: expect.stringMatching(/^5\n?$/) as unknown }])
      const failed = await call('run_step', { session, code: throws })
      expect(failed).toMatchObject({ isError: true, structuredContent: { status: 'failed' } })
      const other = language === 'bash' ? 'python' : 'bash'
      expect(errorOf(await call('run_code', { language: other, session, code: '1' }))).toMatchObject({
        code: 'invalid_request',
      })
      expect(fieldsOf(await call('terminate', { session }))).toMatchObject({ session, state: 'terminated' })
      expect(errorOf(await call('run_step', { session, code: value }))).toMatchObject({ code: 'session_expired' })
    })

    it('interrupt a step when the call is cancelled, and the session lives on', async () => {
      const { id: session } = fieldsOf(await call('create_session', { runtime: language, sandbox }))
      const caller = new AbortController()
      const running = client.callTool(
        { name: 'run_step', arguments: { session, code: runs, stepId: 'long' } },
        { signal: caller.signal, onprogress: ({ message }) => message === 'begun' && caller.abort() },
      )
      await expect(running).rejects.toThrow()
      const [step] = await waitFor(
        async () => {
          const { items } = await (await airlock.sessions.get(session)).steps()
          return items[0]?.status === 'running' ? undefined : items
        },
        { signal: deadline(100_000), everyMs: 50 },
      )
      expect(step).toMatchObject({ stepId: 'long', status: 'failed' })
      const next = await call('run_step', { session, code: value })
      expect(fieldsOf(next)).toMatchObject({ status: 'completed', restarted: false })
      await call('terminate', { session })
    })
  })
})

describe('the evidence of tool calls', requires('root'), () => {
  it('is that of the same calls by HTTP, under the same key', async () => {
    const client = await connectHttp(server, 'legacy')
    const { id } = fieldsOf(await client.callTool({ name: 'create_sandbox', arguments: {} }))
    await client.callTool({ name: 'run_command', arguments: { sandbox: id, argv: ['true'] } })
    await client.callTool({ name: 'write_file', arguments: { sandbox: id, path: 'a', content: 'b' } })
    await client.callTool({ name: 'terminate', arguments: { sandbox: id } })
    await client.close()
    const other = await airlock.sandboxes.create()
    await other.run(['true'])
    await other.files.write('a', 'b')
    await other.terminate()
    const left = await trail(id)
    expect(left).toEqual(await trail(other.id))
    const { actor } = await airlock.whoami()
    expect(left).toContain(`${actor}: command.run requested`)
    expect(left).toContain(`${actor}: file.write done`)
  })
})

describe('a key that is bound to one agent', requires('root'), () => {
  let key: string
  let mine: Airlock
  const connect = (apiKey: string) => new Airlock({ url: server.url, apiKey })
  const bound = async (...agents: string[]) =>
    (await connect(server.adminKey).keys.create({ name: 'own', role: 'developer', agents })).secret
  beforeAll(async () => {
    for (const agent of ['coder', 'writer']) await connect(server.adminKey).agents.register(agent, { approve: true })
    key = await bound('coder')
    mine = connect(key)
  })

  it('means that agent by the API', async () => {
    const sandbox = await mine.sandboxes.create()
    const named = await mine.sandboxes.getOrCreate('own')
    const session = await mine.sessions.create({ runtime: 'bash' })
    const operation = { kind: 'file', action: 'read', path: '/workspace/a' } as const
    const { question } = await mine.guardian.evaluate({ point: 'file.read', operation })
    expect([sandbox.data.agent, named.data.agent, session.data.agent, question.agent]).toEqual(
      Array.from({ length: 4 }, () => 'coder'),
    )
    expect((await mine.sandboxes.getOrCreate('own')).id).toBe(named.id)
    await session.terminate()
    for (const one of [sandbox, named]) await one.terminate()
  })

  it.each(WAYS.slice(0, 2))('means that agent over $way', async ({ open }) => {
    const client = await open(key)
    const call = async (name: string, given: Readonly<Record<string, unknown>> = {}) =>
      client.callTool({ name, arguments: given })
    const created = await call('create_sandbox')
    expect(created.structuredContent).toMatchObject({ agent: 'coder' })
    const { id: session, sandbox } = fieldsOf(await call('create_session', { runtime: 'bash' }))
    expect((await mine.sandboxes.get(sandbox)).data.agent).toBe('coder')
    const ran = fieldsOf(await call('run_code', { language: 'bash', code: 'echo 42' }))
    expect(ran).toMatchObject({ status: 'completed', stdout: '42\n' })
    const listed = fieldsOf(await call('list_sandboxes', { agent: 'coder' }))
    expect(listed.items.map((one) => one.id)).toContain(fieldsOf(created).id)
    const other = errorOf(await call('run_code', { language: 'bash', code: 'true', agent: 'writer' }))
    expect(other).toMatchObject({ code: 'agent_not_found' })
    await call('terminate', { session })
    await call('terminate', { sandbox: fieldsOf(created).id })
    await client.close()
  })

  it('means that agent on the command line', async () => {
    const run = async (...words: string[]) =>
      promisify(execFile)(process.execPath, [AIRLOCK, ...words], { env: stdioEnvironment(server, key) })
    expect((await run('run', '--', 'echo', '42')).stdout).toBe('42\n')
    expect((await run('bash', '-c', 'echo 42')).stdout).toBe('42\n')
    const { stdout } = await run('create', '--json')
    const { id, agent } = JSON.parse(stdout) as { readonly id: string; readonly agent: string }
    expect(agent).toBe('coder')
    await (await mine.sandboxes.get(id)).terminate()
  })

  it('is told which agents there are when it is bound to several, and names one', async () => {
    const several = connect(await bound('coder', 'writer'))
    const refused = {
      code: 'agent_required',
      status: 400,
      message: expect.stringContaining('coder, writer') as unknown,
    }
    await expect(several.sandboxes.create()).rejects.toMatchObject(refused)
    await expect(several.sandboxes.getOrCreate('own')).rejects.toMatchObject(refused)
    await expect(several.sessions.create({ runtime: 'bash' })).rejects.toMatchObject(refused)
    const { items } = await connect(server.adminKey).audit.events({ point: 'sandbox.create', limit: 10 })
    const denied = items.filter(({ status, error }) => status === 'denied' && error?.code === 'agent_required')
    expect(denied.map(({ agent }) => agent)).toEqual([null, null, null])
    const sandbox = await several.sandboxes.create({ agent: 'writer' })
    expect(sandbox.data.agent).toBe('writer')
    await sandbox.terminate()
  })

  it('is not needed: whoever is bound to none acts for the default agent', async () => {
    const sandbox = await airlock.sandboxes.create()
    expect(sandbox.data.agent).toBe('default')
    await sandbox.terminate()
  })
})

/** What was recorded of a sandbox, from its beginning to its end. */
async function trail(sandbox: string): Promise<readonly string[]> {
  const auditor = new Airlock({ url: server.url, apiKey: server.adminKey })
  const look = async (): Promise<readonly AuditRecord[] | undefined> => {
    const { items } = await auditor.audit.events({ sandbox })
    return items.some(({ point, status }) => point === 'sandbox.terminate' && status === 'done') ? items : undefined
  }
  const records = await waitFor(look, { signal: deadline(100_000), everyMs: 100 })
  return records.map(({ actor, point, status }) => `${actor}: ${point} ${status}`).toReversed()
}

/** Whether a process of the sandbox still sleeps for that long. */
function sleeping(sandbox: string, seconds: string): boolean {
  return server.processesOf(sandbox).some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${seconds}\0`
    } catch {
      // It is gone, which is what we ask.
      return false
    }
  })
}

async function living(): Promise<readonly string[]> {
  return (await airlock.sandboxes.list()).items.map((sandbox) => sandbox.id)
}
