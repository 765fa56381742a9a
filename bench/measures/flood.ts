import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { BusyFlood, mcpText, textOf } from '../../test/support/busy-flood.ts'
import type { Metric } from '../report.ts'
import { type BenchServer, startServer } from '../server.ts'
import type { Samples } from './race.ts'

const NAME = 'Airlock'
const CONNECTIONS = 1_000
const TENANT = 'flood'
/** The rates that a server has by default. */
const RATES = { AIRLOCK_KEY_REQUESTS_PER_S: '2000', AIRLOCK_TENANT_REQUESTS_PER_S: '4000' }

interface Plan {
  readonly rounds: number
  readonly samples: Samples
}

/**
 * Reducing calls of newcomers, each on a new connection, while one key of another tenant keeps 1,000 connections busy. The
 * server is one of its own: its rates are the defaults.
 */
export async function measureFlood({ rounds, samples }: Plan): Promise<void> {
  const server = await startServer(RATES)
  try {
    const admin = readFileSync(join(server.home, 'admin.key'), 'utf8').trim()
    const key = await makeHostileKey(server, admin)
    const texts = [textOf('GET', '/v1/whoami', { key }), mcpText(key, 'tools/list')]
    const flood = new BusyFlood(server.url, { count: CONNECTIONS, texts, mode: 'repeat' })
    try {
      await flood.until(({ open }) => open === CONNECTIONS)
      for (let round = 0; round < rounds; round++) await measureRound({ server, admin, samples })
      await flood.goesOn()
    } finally {
      flood.stop()
    }
  } finally {
    await server.stop()
  }
}

interface Round {
  readonly server: BenchServer
  readonly admin: string
  readonly samples: Samples
}

async function measureRound({ server, admin, samples }: Round): Promise<void> {
  const [ended, killed] = [await server.client.sandboxes.create(), await server.client.sandboxes.create()]
  const terminate = { path: `/v1/sandboxes/${ended.id}/terminate`, key: server.key, body: {} }
  const body = { scope: 'sandbox', target: killed.id, reason: 'bench' }
  const calls: readonly (readonly [Metric, PostCall])[] = [
    ['floodTerminate', terminate],
    ['floodKill', { path: '/v1/killswitch', key: admin, body }],
  ]
  for (const [metric, call] of calls) {
    const before = performance.now()
    await post(server, call)
    const tookMs = performance.now() - before
    samples.add(metric, NAME, tookMs)
    samples.add('floodReduce', NAME, tookMs)
  }
}

async function makeHostileKey(server: BenchServer, admin: string): Promise<string> {
  await post(server, { path: '/v1/tenants', key: admin, body: { id: TENANT } })
  const body = { name: TENANT, role: 'developer', tenant: TENANT }
  return ((await post(server, { path: '/v1/keys', key: admin, body })) as { secret: string }).secret
}

interface PostCall {
  readonly path: string
  readonly key: string
  readonly body: object
}

/** On a connection of its own. */
async function post(server: BenchServer, { path, key, body }: PostCall): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const outgoing = request(new URL(path, server.url), { method: 'POST', headers, agent: false })
  outgoing.end(JSON.stringify(body))
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const text = (await response.setEncoding('utf8').toArray()).join('')
  if (response.statusCode !== 200) throw new TypeError(`${path} answered ${response.statusCode}: ${text}`)
  return JSON.parse(text)
}
