import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { deadline, newId } from '@airlock/std'
import { expect } from 'vitest'
import type { TestServer } from '../support/server.ts'

const HANG_MS = 100_000

export interface Call {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly key?: string
  readonly body?: object
}

/** One call on a connection of its own, without retries. Fails unless the answer is 200. */
export async function call(server: Pick<TestServer, 'url'>, { method, path, key, body }: Call): Promise<unknown> {
  const headers = {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(path === '/mcp' ? { accept: 'application/json, text/event-stream' } : {}),
  }
  const signal = deadline(HANG_MS)
  const outgoing = request(`${server.url}${path}`, { method, headers, agent: false, signal })
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(outgoing, 'response', { signal })) as [IncomingMessage]
  const text = (await response.setEncoding('utf8').toArray()).join('')
  expect([method, path, response.statusCode, text]).toEqual([method, path, 200, text])
  return response.headers['content-type']?.startsWith('application/json') === true ? JSON.parse(text) : text
}

/** Developer keys of a new tenant that floods. */
export async function hostileKeys(server: TestServer, count: number): Promise<readonly string[]> {
  const { adminKey: key } = server
  const tenant = newId('flood').toLowerCase()
  await call(server, { method: 'POST', path: '/v1/tenants', key, body: { id: tenant } })
  const keys: string[] = []
  for (let at = 0; at < count; at++) {
    const body = { name: `flood-${at}`, role: 'developer', tenant }
    keys.push(((await call(server, { method: 'POST', path: '/v1/keys', key, body })) as { secret: string }).secret)
  }
  return keys
}

export async function createSandboxes(server: TestServer, count: number): Promise<readonly string[]> {
  const create = async () => call(server, { method: 'POST', path: '/v1/sandboxes', key: server.developerKey, body: {} })
  const made = (await Promise.all(Array.from({ length: count }, create))) as { id: string }[]
  return made.map(({ id }) => id)
}

/** Calls that neighbours must get answered during a flood, each on a new connection. */
export function newcomers(server: TestServer, [ended = '', killed = '']: readonly string[]): readonly Call[] {
  const { developerKey, adminKey } = server
  const kill = { scope: 'sandbox', target: killed, reason: 'a test' }
  return [
    { method: 'GET', path: '/healthz' },
    { method: 'GET', path: '/readyz' },
    { method: 'GET', path: '/v1/whoami', key: developerKey },
    { method: 'GET', path: '/v1/killswitch', key: adminKey },
    { method: 'POST', path: `/v1/sandboxes/${ended}/terminate`, key: developerKey, body: {} },
    { method: 'POST', path: '/v1/killswitch', key: adminKey, body: kill },
  ]
}
