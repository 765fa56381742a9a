import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { BusyFlood, mcpText, OTHERS, type Plan, textOf } from '../support/busy-flood.ts'
import { removeHome } from '../support/leftovers.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { memoryMb, peakMemoryMb } from '../support/peak-memory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { call, createSandboxes, hostileKeys, newcomers } from './newcomers.ts'

const PROGRAM = fileURLToPath(new URL('../support/silent-callers.ts', import.meta.url))
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

/** The most of one caller that is alone: connections, and requests under way. */
const SHARE = 2_048
const REQUESTS = 1_024
/** The most connections of a tenant. */
const TENANT_SHARE = 4_096
/** Longer than a test: closed connections are not replaced. */
const NEVER_MS = 1_000_000
/** From many addresses: a slow server would close strangers of one address before it has read their key. */
const ONCE = { mode: 'hold', from: OTHERS, againMs: NEVER_MS } as const
/** Memory that may stay after all bodies ended. */
const LEFT_MB = 64

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

describe('the API stays open to other tenants', requires('root'), () => {
  const flood = async (plan: Plan): Promise<BusyFlood> => {
    const started = new BusyFlood(server.url, plan)
    onTestFinished(() => started.stop())
    return started
  }

  /** Each newcomer is answered between two answers to the flood. */
  const answersNewcomers = async (lasting: BusyFlood, sandboxes: readonly string[]): Promise<void> => {
    for (const one of newcomers(server, sandboxes)) {
      await lasting.goesOn()
      await call(server, one)
    }
    await lasting.goesOn()
  }

  it('while a thousand connections of one key ask without end, at /mcp too', async () => {
    const [key = ''] = await hostileKeys(server, 1)
    const sandboxes = await createSandboxes(server, 2)
    const texts = [textOf('GET', '/v1/whoami', { key }), mcpText(key, 'tools/list')]
    const busy = await flood({ count: 1000, texts, mode: 'repeat' })
    await busy.until(({ open }) => open === 1000)
    await answersNewcomers(busy, sandboxes)
    // The share of one key has room for all of them: none was refused.
    expect((await busy.counts()).answers).toEqual({ 200: expect.any(Number) })
  })

  it('while one key opens connections at /mcp: its share is kept, and the rest is closed', async () => {
    const [key = ''] = await hostileKeys(server, 1)
    const sandboxes = await createSandboxes(server, 2)
    const many = await flood({ count: SHARE + 500, texts: [mcpText(key, 'ping')], ...ONCE })
    await many.until(({ opened, open, answers }) => opened === SHARE + 500 && open <= SHARE && '429' in answers)
    for (const one of newcomers(server, sandboxes)) await call(server, one)
    // Connections within the share stay, except those refused with an unread body.
    const { open } = await many.counts()
    expect(open).toBeGreaterThan(REQUESTS / 2)
    expect(open).toBeLessThanOrEqual(SHARE)
  })

  it('while nine keys of one tenant open connections: the tenant holds half at most', async () => {
    const keys = await hostileKeys(server, 9)
    const sandboxes = await createSandboxes(server, 2)
    const texts = keys.map((key) => textOf('GET', '/v1/whoami', { key }))
    const many = await flood({ count: 9 * 500, texts, ...ONCE })
    await many.until(({ opened, open, answers }) => opened === 9 * 500 && open <= TENANT_SHARE && '429' in answers)
    for (const one of newcomers(server, sandboxes)) await call(server, one)
    const { open } = await many.counts()
    expect(open).toBeGreaterThan(TENANT_SHARE / 2)
    expect(open).toBeLessThanOrEqual(TENANT_SHARE)
  })

  it('while one key sends unfinished bodies to a route that reduces: beyond the share they are cut', async () => {
    const [key = ''] = await hostileKeys(server, 1)
    const sandboxes = await createSandboxes(server, 2)
    const text = textOf('POST', '/v1/sandboxes/sbx_x/terminate', { key, body: { reason: 'x' } }).slice(0, -3)
    const many = await flood({ count: REQUESTS + 200, texts: [text], mode: 'hold' })
    await many.until(({ opened }) => opened >= REQUESTS + 200)
    for (const one of newcomers(server, sandboxes)) await call(server, one)
    // Connections beyond the share of requests are cut, and replaced.
    await many.until(({ opened }) => opened > REQUESTS + 300)
  })

  it('while bodies never end: they fill no memory, a neighbour sends one, and the memory comes back', async () => {
    const [key = ''] = await hostileKeys(server, 1)
    const before = memoryMb(server.home, 'control-plane')
    const text = mcpText(key, 'ping', { x: 'x'.repeat(BODY_BYTES) }).slice(0, -10)
    const bodies = await flood({ count: BODIES, texts: [text], mode: 'hold' })
    await bodies.settled()
    const message = { jsonrpc: '2.0', id: 1, method: 'ping', params: { x: 'x'.repeat(BODY_BYTES) } }
    await call(server, { method: 'POST', path: '/mcp', key: server.developerKey, body: message })
    const { open } = await bodies.counts()
    expect(open).toBe(BODIES)
    expect(peakMemoryMb(server.home, 'control-plane') - before).toBeLessThan((BODIES * BODY_BYTES) / MIB / 3)
    bodies.stop()
    await waitFor(() => (memoryMb(server.home, 'control-plane') < before + LEFT_MB ? true : undefined), {
      signal: deadline(100_000),
      everyMs: 50,
    })
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
