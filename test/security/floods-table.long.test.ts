import { deadline, waitFor } from '@airlock/std'
import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { BusyFlood, mcpText, OTHERS, type Plan, textOf, total } from '../support/busy-flood.ts'
import { memoryMb, peakMemoryMb } from '../support/peak-memory.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { call, createSandboxes, hostileKeys, newcomers } from './newcomers.ts'

const MIB = 1024 * 1024
const BODY_BYTES = 4 * MIB - 1000
/** The most files of the control plane: connections with a key, strangers, and its own. */
const FILES = 8_192 + 2_048 + 256
/** Above the idle server: bodies (128 MiB), and what parsing and sockets take. */
const PEAK_MB = 300
const LEFT_MB = 64
/** Answers of the flood at which its key is over its burst. */
const OVER_BURST = 6_000
/** As many connections as one process may have files, from two processes. */
const PER_PROCESS = 9_500

type Kind = 'whoami' | 'mcp' | 'reduce' | 'mixed' | 'uploads'

const BUSY: readonly (readonly [connections: number, kind: Kind])[] = [
  [50, 'whoami'],
  [300, 'whoami'],
  [1_000, 'whoami'],
  [1_000, 'mcp'],
  [1_000, 'reduce'],
  [3_000, 'mixed'],
  [300, 'uploads'],
]

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { AIRLOCK_KEY_REQUESTS_PER_S: '1000' } })
}, 240_000)
afterAll(async () => {
  await server?.stop()
})

// First, while the memory of the server is that of a fresh one.
it.each(['mcp', 'reduce'] as const)('bodies that never end (%s) fill no memory, which comes back', async (kind) => {
  const [key = ''] = await hostileKeys(server, 1)
  const before = memoryMb(server.home, 'control-plane')
  const text = kind === 'mcp' ? mcpText(key, 'ping', { x: 'x'.repeat(BODY_BYTES) }) : textsOf(kind, key)[0]
  const flood = start({ count: 500, texts: [text?.slice(0, -10) ?? ''], mode: 'hold' })
  await flood.settled()
  await call(server, { method: 'GET', path: '/v1/whoami', key: server.developerKey })
  const peak = peakMemoryMb(server.home, 'control-plane')
  expect(peak).toBeLessThan(before + PEAK_MB)
  flood.stop()
  const left = await waitFor(
    () => {
      const now = memoryMb(server.home, 'control-plane')
      return now < before + LEFT_MB ? now : undefined
    },
    { signal: deadline(100_000), everyMs: 100 },
  )
  console.log(`500 bodies (${kind}): ${rounded(before)} MB before, peak ${rounded(peak)} MB, ${rounded(left)} MB after`)
})

describe('newcomers are answered while one key floods', requires('root'), () => {
  it.each(BUSY)('with %i busy connections (%s), also beyond its rate', async (count, kind) => {
    const [key = ''] = await hostileKeys(server, 1)
    const sandboxes = await createSandboxes(server, 4)
    const flood = start({ count, texts: textsOf(kind, key), mode: 'repeat' })
    await flood.until((counts) => total(counts) > count)
    await answers(flood, sandboxes.slice(0, 2))
    // Refused uploads are read to their end, so fewer are answered.
    await flood.until((counts) => total(counts) > (kind === 'uploads' ? 3 * count : OVER_BURST))
    await answers(flood, sandboxes.slice(2))
  })
})

describe('connections to the limit of descriptors', requires('root'), () => {
  it.each([
    ['one key at /mcp', 1, 'mcp'],
    ['ten keys of one tenant', 10, 'whoami'],
    ['ten keys at a route that reduces', 10, 'reduce'],
  ] as const)('%s, from several addresses: newcomers are answered', async (_, count, kind) => {
    const keys = await hostileKeys(server, count)
    const sandboxes = await createSandboxes(server, 2)
    const texts = keys.flatMap((key) => textsOf(kind, key))
    const plan: Plan = { count: PER_PROCESS, texts, mode: 'hold', from: OTHERS, againMs: 5_000 }
    const floods = [start(plan), start(plan)]
    for (const flood of floods) await flood.until(({ opened }) => opened >= PER_PROCESS)
    for (const one of newcomers(server, sandboxes)) await call(server, one)
    expect(readdirSync(`/proc/${pidOf(server.home, 'control-plane')}/fd`).length).toBeLessThan(FILES)
  })
})

function start(plan: Plan): BusyFlood {
  const flood = new BusyFlood(server.url, plan)
  onTestFinished(() => flood.stop())
  return flood
}

/** Each newcomer is answered between two answers to the flood. */
async function answers(flood: BusyFlood, sandboxes: readonly string[]): Promise<void> {
  const times: number[] = []
  for (const one of newcomers(server, sandboxes)) {
    await flood.goesOn()
    const before = performance.now()
    await call(server, one)
    times.push(rounded(performance.now() - before))
  }
  await flood.goesOn()
  console.log(
    `newcomers were answered after ${times.join(', ')} ms; the flood: ${JSON.stringify(await flood.counts())}`,
  )
}

function textsOf(kind: Kind, key: string): readonly string[] {
  const whoami = textOf('GET', '/v1/whoami', { key })
  const mcp = mcpText(key, 'tools/list')
  const reduce = textOf('POST', '/v1/sandboxes/sbx_x/terminate', { key, body: { reason: 'a flood' } })
  const upload = `PUT /v1/sandboxes/sbx_x/files?path=/x HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-length: ${BODY_BYTES}\r\n\r\n${'x'.repeat(BODY_BYTES)}`
  const texts = {
    whoami: [whoami],
    mcp: [mcp],
    reduce: [reduce],
    mixed: [whoami, mcp, reduce],
    uploads: [upload],
  }
  return texts[kind]
}

function rounded(value: number): number {
  return Math.round(value)
}
