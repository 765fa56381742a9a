import { chmodSync, mkdtempSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Airlock } from '@airlock/sdk'
import type { TestProject } from 'vitest/node'
import { removeHome } from './leftovers.ts'
import { startServer, type TestServer } from './server.ts'
import { switchShippedRulesOff } from './shipped-rules.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Lends servers: see `borrowServer`. */
    serverDesk: string
  }
}

/** A server that files of tests use one after the other, as it is when nobody uses it. */
interface Lent {
  readonly server: TestServer
  readonly rules: string
  readonly before: string
}

/** What a file must leave as it found it: the next one relies on it. */
const GOVERNING = [
  'SELECT id FROM tenants ORDER BY id',
  `SELECT tenant, id, approved, state = 'suspended' AS suspended FROM agents ORDER BY tenant, id`,
  'SELECT id FROM api_keys WHERE revoked_at IS NULL ORDER BY id',
  'SELECT * FROM templates ORDER BY 1, 2',
  `SELECT scope, name, document FROM policies AS one WHERE document IS NOT NULL AND version =
    (SELECT max(version) FROM policies WHERE scope = one.scope AND name = one.name) ORDER BY scope, name`,
  'SELECT * FROM budgets ORDER BY 1, 2',
  'SELECT * FROM grants ORDER BY 1, 2',
  'SELECT * FROM webhooks ORDER BY 1, 2',
  `SELECT id FROM approvals WHERE state IN ('pending', 'approved') ORDER BY id`,
  `SELECT id FROM kills WHERE lifted_at IS NULL AND scope <> 'sandbox' ORDER BY id`,
] as const

/**
 * Starting a server costs more than most files of tests do. Whoever needs no server of its own borrows one here; one that
 * comes back changed, or dead, is ended, and the next borrower gets another.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const run = project.getProvidedContext().testRun
  const free: Lent[] = []
  const lent = new Map<string, Lent>()
  const desk = createServer((request, response) => void answer({ request, response, run, free, lent })).listen(
    0,
    '127.0.0.1',
  )
  await once(desk, 'listening')
  const { port } = desk.address() as AddressInfo
  project.provide('serverDesk', `http://127.0.0.1:${port}`)
  return async () => {
    desk.close()
    for (const { server } of [...free, ...lent.values()]) await end(server)
  }
}

interface Desk {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly run: string
  readonly free: Lent[]
  readonly lent: Map<string, Lent>
}

async function answer(desk: Desk): Promise<void> {
  const { pathname, searchParams } = new URL(desk.request.url ?? '/', 'http://desk')
  const asked = searchParams.get('of') ?? ''
  try {
    const said = pathname === '/borrow' ? await lend(desk, asked) : await takeBack(desk, asked)
    desk.response.end(JSON.stringify(said))
  } catch (error) {
    desk.response.writeHead(500).end(error instanceof Error ? error.message : String(error))
  }
}

async function lend({ run, free, lent }: Desk, rules: string) {
  const at = free.findIndex((one) => one.rules === rules)
  const found = at < 0 ? await start(run, rules) : free.splice(at, 1)[0]
  if (!found) throw new TypeError('a free server is gone')
  const { url, developerKey, adminKey, pid, home } = found.server
  lent.set(home, found)
  return { url, developerKey, adminKey, pid, home }
}

async function start(run: string, rules: string): Promise<Lent> {
  const home = mkdtempSync(join(tmpdir(), `al-${run}`))
  chmodSync(home, 0o711)
  const server = await startServer({ home })
  if (rules === 'off') await switchShippedRulesOff(server)
  return { server, rules, before: governing(home) }
}

/** Answers what was wrong with it, which nobody is to blame for. */
async function takeBack({ free, lent }: Desk, home: string): Promise<{ readonly ended: string | null }> {
  const one = lent.get(home)
  lent.delete(home)
  if (!one) throw new TypeError(`nobody borrowed ${home}`)
  const { server, before } = one
  if (!server.isRunning()) {
    await end(server)
    return { ended: 'it does not run' }
  }
  const { sandboxes } = new Airlock({ url: server.url, apiKey: server.adminKey })
  for (const sandbox of (await sandboxes.list({})).items) await sandbox.terminate()
  if (governing(home) === before) {
    free.push(one)
    return { ended: null }
  }
  await end(server)
  return { ended: 'it is not as it was' }
}

/** Fails when its sandboxes left something on the host. */
async function end(server: TestServer): Promise<void> {
  await server.stop('SIGINT')
  await removeHome(server.home)
}

function governing(home: string): string {
  const store = new DatabaseSync(join(home, 'control-plane/airlock.db'), { readOnly: true })
  try {
    const rows = GOVERNING.map((query) => store.prepare(query).all())
    return JSON.stringify(rows)
  } finally {
    store.close()
  }
}
