import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { BusyFlood, mcpText, textOf } from '../support/busy-flood.ts'
import { removeHome } from '../support/leftovers.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { peakMemoryMb } from '../support/peak-memory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { call, createSandboxes, hostileKeys, newcomers } from './newcomers.ts'

const PROGRAM = fileURLToPath(new URL('../support/silent-callers.ts', import.meta.url))
const OTHERS = Array.from({ length: 20 }, (_, at) => `127.0.0.${at + 2}`)
const OWN = ['127.0.0.1']
const HEAD = 'GET /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer al_'
const BODY =
  'POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{'

/** Who comes, from where, and what they say: ten thousand in all. */
const FLOODS = [
  { count: 2_500, text: '', from: OTHERS },
  { count: 2_500, text: '', from: OWN },
  { count: 2_500, text: HEAD, from: OTHERS },
  { count: 1_250, text: HEAD, from: OWN },
  { count: 1_250, text: BODY, from: OWN },
] as const
const ROUNDS = 3
const MIB = 1024 * 1024
/** Together more than the control plane ever keeps. */
const BODIES = 250
const BODY_BYTES = 4 * MIB - 1000
/** What a process has open beside those who may be connected without a key. */
const FILES = 2_048 + 256

let server: TestServer

beforeAll(async () => {
  server = await startServer()
}, 240_000)
afterAll(async () => {
  await server?.stop()
})

describe('ten thousand connections without a key', requires('root'), () => {
  it('keep nobody with a key from creating, running and killing, each by a connection of its own', async () => {
    const { port } = new URL(server.url)
    const callers: ChildProcess[] = []
    onTestFinished(() => callers.forEach((caller) => caller.kill('SIGKILL')))
    const began = FLOODS.map(async ({ count, text, from }) => {
      const caller = fork(PROGRAM, [port, String(count), text, from.join(',')], { execArgv: [] })
      callers.push(caller)
      await once(caller, 'message')
    })
    const times: number[] = []
    // Once while they come, and then while they are there.
    await useAll(times)
    await Promise.all(began)
    for (let round = 0; round < ROUNDS; round++) await useAll(times)
    const open = readdirSync(`/proc/${pidOf(server.home, 'control-plane')}/fd`).length
    const opened = await Promise.all(callers.map(openedBy))
    console.log(
      `${opened.reduce((sum, n) => sum + n)} connections without a key, ${open} files open; ${times.length} calls, the slowest answered after ${Math.max(...times)} ms`,
    )
    expect(open).toBeLessThan(FILES)
  }, 180_000)
})

describe('one key that asks without end', requires('root'), () => {
  it('by a thousand connections, keeps nobody else from asking, terminating and killing by a new connection each', async () => {
    const [key = ''] = await hostileKeys(server, 1)
    const sandboxes = await createSandboxes(server, 2)
    const texts = [textOf('GET', '/v1/whoami', { key }), mcpText(key, 'tools/list')]
    const flood = new BusyFlood(server.url, { count: 1000, texts, then: 'keep' })
    onTestFinished(() => flood.stop())
    await flood.until(({ open }) => open === 1000)
    for (const one of newcomers(server, sandboxes)) {
      await flood.goesOn()
      await call(server, one)
    }
    // It was held back, not refused.
    await flood.goesOn()
    expect((await flood.counts()).answers).toEqual({ 200: expect.any(Number) })
  })

  it('by bodies that never end, fills no memory, and keeps nobody else from sending one', async () => {
    const [key = ''] = await hostileKeys(server, 1)
    const before = peakMemoryMb(server.home, 'control-plane')
    const text = mcpText(key, 'ping', { x: 'x'.repeat(BODY_BYTES) }).slice(0, -10)
    const flood = new BusyFlood(server.url, { count: BODIES, texts: [text], then: 'hold' })
    onTestFinished(() => flood.stop())
    await flood.settled()
    const message = { jsonrpc: '2.0', id: 1, method: 'ping', params: { x: 'x'.repeat(BODY_BYTES) } }
    await call(server, { method: 'POST', path: '/mcp', key: server.developerKey, body: message })
    const { open } = await flood.counts()
    expect(open).toBe(BODIES)
    expect(peakMemoryMb(server.home, 'control-plane') - before).toBeLessThan((BODIES * BODY_BYTES) / MIB / 3)
  })
})

describe('a key that is refused again and again', requires('root'), () => {
  it('fills no evidence: the first refusals are written, the others counted, and none is lost when the server ends', async () => {
    const refused = 2_000
    const agent = new Agent({ keepAlive: true, maxSockets: 16 })
    const ask = async () => statusOf(request(`${server.url}/v1/keys`, { agent, headers: keyed(server.developerKey) }))
    const statuses = await Promise.all(Array.from({ length: refused }, ask))
    agent.destroy()
    expect(new Set(statuses)).toEqual(new Set([403]))
    await server.stop('SIGTERM')
    const payloads = recordsOf(server.home)
      .filter(({ point }) => point === 'auth.refuse')
      .map(({ payload }) => payload)
    expect(payloads.length).toBeLessThan(150)
    const counts = payloads.map(({ refusals = 1 }) => refusals)
    expect(counts.reduce((sum, n) => sum + n)).toBe(refused)
    await removeHome(server.home)
  }, 120_000)
})

/** As its file has them. */
function recordsOf(home: string): readonly { readonly point: string; readonly payload: { refusals?: number } }[] {
  const chain = `${home}/recorder/chains/default`
  const segments = readdirSync(chain).filter((name) => name.endsWith('.ndjson'))
  const lines = segments.flatMap((name) => readFileSync(`${chain}/${name}`, 'utf8').trim().split('\n'))
  return lines.map((line) => JSON.parse(line))
}

async function statusOf(outgoing: ClientRequest): Promise<number | undefined> {
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  await response.resume().toArray()
  return response.statusCode
}

function keyed(key: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${key}` }
}

async function openedBy(caller: ChildProcess): Promise<number> {
  const answer = once(caller, 'message')
  caller.send('how many')
  const [{ opened }] = (await answer) as [{ opened: number }]
  return opened
}

async function useAll(times: number[]): Promise<void> {
  const ask = async (path: string, body: object, key = server.developerKey): Promise<unknown> => {
    const start = performance.now()
    const answer = await call(server, { method: 'POST', path, body, key })
    times.push(Math.round(performance.now() - start))
    return answer
  }
  const { id } = (await ask('/v1/sandboxes', {})) as { id: string }
  expect(await ask(`/v1/sandboxes/${id}/commands`, { argv: ['echo', 'hi'] })).toMatchObject({ stdout: 'hi\n' })
  const kill = { scope: 'sandbox', target: id, reason: 'a test' }
  expect(await ask('/v1/killswitch', kill, server.adminKey)).toMatchObject(kill)
}
