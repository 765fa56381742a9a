import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { AIRLOCK, stdioEnvironment } from './client.ts'

let server: BorrowedServer
let airlock: Airlock
beforeAll(async () => {
  server = await borrowServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
})
afterAll(async () => server?.giveBack())

/** `airlock mcp` as a client starts it, with every line that it writes. */
class Served {
  readonly lines: string[] = []
  readonly child: ChildProcessWithoutNullStreams
  readonly #exited: Promise<unknown[]>
  errors = ''

  constructor(env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [AIRLOCK, 'mcp'], { env, stdio: 'pipe' })
    this.#exited = once(this.child, 'exit')
    createInterface({ input: this.child.stdout }).on('line', (line) => this.lines.push(line))
    this.child.stderr.on('data', (bytes: Buffer) => (this.errors += bytes.toString()))
  }

  send(message: object): void {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  async open(): Promise<void> {
    const clientInfo = { name: 'raw', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    this.send({ id: 0, method: 'initialize', params })
    await this.answer(0)
    this.send({ method: 'notifications/initialized' })
  }

  async answer(id: number): Promise<string> {
    const found = (): string | undefined => this.lines.find((line) => line.includes(`"id":${id}}`))
    return waitFor(found, { signal: deadline(100_000), everyMs: 10 })
  }

  /** Its exit code or signal. */
  async ended(): Promise<unknown> {
    const [code, signal] = await this.#exited
    return signal ?? code
  }
}

const started: Served[] = []
function serve(env: Readonly<Record<string, string>> = stdioEnvironment(server)): Served {
  const served = new Served(env)
  started.push(served)
  return served
}
afterEach(() => {
  for (const { child } of started.splice(0)) child.kill('SIGKILL')
})

const RUN_CODE = {
  id: 1,
  method: 'tools/call',
  params: {
    name: 'run_code',
    arguments: { language: 'bash', template: 'base', code: 'echo begun; sleep 600' },
    _meta: { progressToken: 'p' },
  },
}

async function living(): Promise<readonly string[]> {
  return (await airlock.sandboxes.list()).items.map((sandbox) => sandbox.id)
}

describe('airlock mcp', requires('root'), () => {
  it('writes nothing but the protocol on stdout, and ends with stdin', async () => {
    const served = serve()
    await served.open()
    served.send({ id: 1, method: 'tools/call', params: { name: 'list_sandboxes', arguments: {} } })
    await served.answer(1)
    served.child.stdin.write('this is no message\n')
    served.send({ id: 2, method: 'tools/list' })
    await served.answer(2)
    served.child.stdin.end()
    expect(await served.ended()).toBe(0)
    expect(served.lines.map((line) => (JSON.parse(line) as { jsonrpc: string }).jsonrpc)).toEqual(
      served.lines.map(() => '2.0'),
    )
  })

  it.each([
    { how: 'stdin ends', end: (served: Served) => void served.child.stdin.end() },
    { how: 'it is told to', end: (served: Served) => void served.child.kill('SIGTERM') },
  ])('ends the sandbox of a run_code that still runs when $how', async ({ end }) => {
    expect(await living()).toEqual([])
    const served = serve()
    await served.open()
    served.send(RUN_CODE)
    await waitFor(() => served.lines.find((line) => line.includes('begun')), {
      signal: deadline(100_000),
      everyMs: 10,
    })
    expect(await living()).toHaveLength(1)
    end(served)
    expect(await served.ended()).toBe(0)
    expect(await living()).toEqual([])
  })

  it('answers every call with what is wrong when no server is there', async () => {
    const served = serve({ ...stdioEnvironment(server), AIRLOCK_URL: 'http://127.0.0.1:1' })
    await served.open()
    served.send({ id: 1, method: 'tools/call', params: { name: 'list_sandboxes', arguments: {} } })
    expect(await served.answer(1)).toContain('server_unreachable')
  })
})
