import { Client, StreamableHTTPClientTransport, type CallToolResult } from '@modelcontextprotocol/client'
import { ERROR_KEY, TOOLS } from '@airlock/mcp'
import { deadline, waitFor } from '@airlock/std'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TestCore } from './testing/test-core.ts'
import { KEYS, startTestApi, type TestApi } from './testing/test-api.ts'

const REVISIONS = [
  { revision: '2026-07-28', mode: { pin: '2026-07-28' } },
  { revision: '2025-11-25', mode: 'legacy' },
] as const

let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(async () => api.close())

async function connect(mode: (typeof REVISIONS)[number]['mode'], key: string = KEYS.developer): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${api.url}/mcp`), { requestInit }))
  return client
}

async function createSandbox(client: Client): Promise<string> {
  const { structuredContent } = await client.callTool({ name: 'create_sandbox', arguments: {} })
  return (structuredContent as { id: string }).id
}

function errorOf(result: CallToolResult): unknown {
  expect(result.isError).toBe(true)
  return result._meta?.[ERROR_KEY]
}

describe.each(REVISIONS)('a client of revision $revision', ({ mode, revision }) => {
  let client: Client
  let sandbox: string
  beforeAll(async () => {
    client = await connect(mode)
    sandbox = await createSandbox(client)
  })
  afterAll(async () => client.close())

  it('speaks that revision', () => {
    expect(client.getNegotiatedProtocolVersion()).toBe(revision)
  })

  it('sees every tool as the table has it', async () => {
    const { tools } = await client.listTools()
    expect(tools).toEqual(TOOLS.map((tool) => tool.listing))
  })

  it('runs a command, and gets its output as text and as fields', async () => {
    const shell = 'echo out; echo err >&2; exit 3'
    const { content, structuredContent } = await client.callTool({
      name: 'run_command',
      arguments: { sandbox, shell },
    })
    expect(content).toEqual([
      { type: 'text', text: 'out\n' },
      { type: 'text', text: 'stderr:\nerr\n' },
      { type: 'text', text: '[exit code 3.]' },
    ])
    expect(structuredContent).toMatchObject({ sandbox, exitCode: 3, stdout: 'out\n', stderr: 'err\n', cutBytes: 0 })
  })

  it('writes, lists and reads files', async () => {
    const at = { sandbox, path: `notes-${revision}.txt` }
    await client.callTool({ name: 'write_file', arguments: { ...at, content: 'grüße' } })
    await client.callTool({
      name: 'write_file',
      arguments: { ...at, content: 'IQo=', encoding: 'base64', append: true },
    })
    const read = await client.callTool({ name: 'read_file', arguments: at })
    const content = 'grüße!\n'
    expect(read.structuredContent).toEqual({ path: at.path, encoding: 'utf8', content, bytes: 9, cut: false })
    const listed = await client.callTool({ name: 'list_files', arguments: { sandbox } })
    expect(JSON.stringify(listed.structuredContent)).toContain(at.path)
  })

  it('hears why something cannot be', async () => {
    const gone = await client.callTool({ name: 'read_file', arguments: { sandbox, path: 'nothing-here' } })
    expect(errorOf(gone)).toMatchObject({ code: 'file_not_found', retryable: false })
    expect(gone.content).toEqual([
      { type: 'text', text: 'There is no such file in the sandbox. (file_not_found)\nList its directory.' },
    ])
    const wrong = await client.callTool({ name: 'run_command', arguments: { sandbox: 'mine', shell: 'true' } })
    expect(errorOf(wrong)).toMatchObject({ code: 'invalid_request', message: 'sandbox: is not a sandbox id' })
    const both = await client.callTool({ name: 'terminate', arguments: {} })
    expect(errorOf(both)).toMatchObject({ code: 'invalid_request' })
    await expect(client.callTool({ name: 'no_such_tool', arguments: {} })).rejects.toMatchObject({ code: -32602 })
  })

  it('hears how it goes on while it runs', async () => {
    const told: { readonly progress: number; readonly message?: string | undefined }[] = []
    await client.callTool(
      { name: 'run_command', arguments: { sandbox, shell: 'for i in 1 2 3; do echo tick $i; sleep 1; done' } },
      { onprogress: (progress) => void told.push(progress) },
    )
    expect(told.map(({ message }) => message)).toEqual(['starting the command', 'tick 1', 'tick 2', 'tick 3'])
    const measures = told.map(({ progress }) => progress)
    expect(measures).toEqual([...new Set(measures)].toSorted((a, b) => a - b))
  })

  it('stops what runs by cancelling', async () => {
    const caller = new AbortController()
    const call = client.callTool(
      { name: 'run_command', arguments: { sandbox, shell: 'echo begun; exec sleep 600' } },
      { signal: caller.signal, onprogress: ({ message }) => message === 'begun' && caller.abort() },
    )
    await expect(call).rejects.toThrow()
    const latest = async () => (await api.core.listCommands(nobody(), sandbox)).items[0]
    const ended = await waitFor(async () => ((await latest())?.state === 'running' ? undefined : latest()), {
      signal: deadline(100_000),
      everyMs: 20,
    })
    expect(ended).toMatchObject({ state: 'exited', signal: 'SIGKILL' })
  })
})

function nobody() {
  return {
    requestId: 'req',
    principal: { actor: 'test', tenant: 'default', role: 'admin', agents: null, platform: false },
  } as const
}

describe('the door of /mcp', () => {
  const INITIALIZE = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  })

  /** Not by fetch, which lets nobody choose Host. */
  async function post(
    headers: Readonly<Record<string, string>>,
    body = INITIALIZE,
  ): Promise<{ status: number | undefined; headers: Record<string, unknown>; text: string }> {
    const given = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${KEYS.developer}`,
      ...headers,
    }
    return new Promise((resolve, reject) => {
      const sent = request(`${api.url}/mcp`, { method: 'POST', headers: given }, (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk.toString()))
        response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }))
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  it('is shut without a key, and says which kind of key opens it', async () => {
    const { status, headers, text } = await post({ authorization: '' })
    expect({ status, challenge: headers['www-authenticate'] }).toEqual({
      status: 401,
      challenge: 'Bearer realm="airlock"',
    })
    expect(JSON.parse(text)).toMatchObject({ error: { code: 'unauthenticated' } })
  })

  it.each([{ host: 'evil.example' }, { host: 'localhost.evil.example:7070' }])('is shut for %o', async (headers) => {
    expect(await post(headers)).toMatchObject({ status: 403 })
  })

  it.each(['https://evil.example', 'http://localhost.evil.example', 'null', 'file://'])(
    'is shut for pages of %s',
    async (origin) => {
      expect(await post({ origin })).toMatchObject({ status: 403 })
    },
  )

  it('is open for pages of this machine', async () => {
    expect(await post({ origin: 'http://localhost:6274' })).toMatchObject({ status: 200 })
  })

  it('takes no body past its bound', async () => {
    const { status, text } = await post(
      {},
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x'.repeat(5 * 1024 * 1024) }),
    )
    expect({ status, code: JSON.parse(text) as unknown }).toMatchObject({
      status: 413,
      code: { error: { code: 'body_too_large' } },
    })
  })

  it('takes one message at a time', async () => {
    expect(await post({}, `[${INITIALIZE}]`)).toMatchObject({
      status: 400,
      text: expect.stringContaining('-32600') as unknown,
    })
  })

  it('answers what is no message as the protocol says', async () => {
    expect(await post({}, '{')).toMatchObject({ status: 400, text: expect.stringContaining('-32700') as unknown })
    expect(await post({ 'content-type': 'text/plain' })).toMatchObject({ status: 415 })
  })

  it('lets a key do through a tool only what it may do by HTTP, and records what it may not', async () => {
    const client = await connect('legacy', KEYS.auditor)
    const before = api.notes.length
    expect(errorOf(await client.callTool({ name: 'create_sandbox', arguments: {} }))).toMatchObject({
      code: 'forbidden',
    })
    expect(api.notes.slice(before)).toMatchObject([
      { point: 'auth.refuse', actor: 'key:auditor', status: 'denied', payload: { route: 'createSandbox' } },
    ])
    const listed = await client.callTool({ name: 'list_sandboxes', arguments: {} })
    expect(listed.isError).toBeUndefined()
    await client.close()
  })

  it('does not let one key cancel what another one called, not even with the same session', async () => {
    const client = await connect('legacy')
    const sandbox = await createSandbox(client)
    const { headers } = await post({})
    const session = String(headers['mcp-session-id'])
    const body = (id: number) =>
      JSON.stringify({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: { name: 'run_command', arguments: { sandbox, shell: 'sleep 3; echo lived' } },
      })
    const cancel = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })
    const running = post({ 'mcp-session-id': session }, body(7))
    await waitFor(async () => (await api.core.listCommands(nobody(), sandbox)).items[0], {
      signal: deadline(100_000),
      everyMs: 10,
    })
    expect(await post({ 'mcp-session-id': session, authorization: `Bearer ${KEYS.admin}` }, cancel)).toMatchObject({
      status: 202,
    })
    expect(await post({ 'mcp-session-id': 'mcp_of-somebody-else' }, cancel)).toMatchObject({ status: 202 })
    expect((await running).text).toContain('lived')
    const stopped = post({ 'mcp-session-id': session }, body(7))
    await waitFor(
      async () => ((await api.core.listCommands(nobody(), sandbox)).items.length === 2 ? true : undefined),
      {
        signal: deadline(100_000),
        everyMs: 10,
      },
    )
    expect(await post({ 'mcp-session-id': session }, cancel)).toMatchObject({ status: 202 })
    expect((await stopped).text).not.toContain('lived')
    await client.close()
  })
})

describe('a server that closes', () => {
  it('stops what tools run, within its time', async () => {
    const closing = await startTestApi()
    const signals: string[] = []
    const signalCommand: TestCore['signalCommand'] = async (_caller, _of, signal) => void signals.push(signal)
    Object.assign(closing.core, { signalCommand })
    const client = new Client({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${KEYS.developer}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${closing.url}/mcp`), { requestInit }))
    const sandbox = await createSandbox(client)
    const shell = 'echo begun; exec sleep 600'
    const begun = Promise.withResolvers<void>()
    const running = client.callTool(
      { name: 'run_command', arguments: { sandbox, shell } },
      { onprogress: ({ message }) => message === 'begun' && begun.resolve() },
    )
    // How the client hears of it is its own affair.
    const heard = running.catch(() => undefined)
    await begun.promise
    await closing.close()
    expect(signals).toEqual(['SIGKILL'])
    await client.close()
    await heard
  })
})
