import { ERROR_KEY } from '@airlock/mcp'
import { Client, StreamableHTTPClientTransport, type CallToolResult } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { COMPILED } from '../support/compiled.ts'
import type { Reachable } from '../support/server.ts'

/** Both revisions of the protocol that there are, as a client asks for them. */
export const REVISIONS = [
  { revision: '2026-07-28', mode: { pin: '2026-07-28' } },
  { revision: '2025-11-25', mode: 'legacy' },
] as const
type Mode = (typeof REVISIONS)[number]['mode']

export const AIRLOCK = fileURLToPath(new URL('../../packages/cli/bin/airlock.js', import.meta.url))

export async function connectHttp(server: Reachable, mode: Mode, key = server.developerKey): Promise<Client> {
  const client = newClient(mode)
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }))
  return client
}

export async function connectStdio(
  server: Reachable,
  mode: Mode,
  key?: string,
): Promise<{ client: Client; pid: () => number | null }> {
  const client = newClient(mode)
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [AIRLOCK, 'mcp'],
    env: stdioEnvironment(server, key),
  })
  await client.connect(transport)
  return { client, pid: () => transport.pid }
}

export function stdioEnvironment(server: Reachable, key = server.developerKey): Record<string, string> {
  return { ...COMPILED, PATH: process.env['PATH'] ?? '', AIRLOCK_URL: server.url, AIRLOCK_API_KEY: key }
}

/** What tools answer, as far as a test looks at it; which of it is there depends on the tool. */
interface Fields {
  readonly id: string
  readonly sandbox: string
  readonly items: readonly { readonly id: string }[]
  readonly entries: readonly { readonly name: string }[]
  readonly stdout: string
  readonly cutBytes: number
}

/** The fields of the answer of a tool that did what it was asked. */
export function fieldsOf(result: CallToolResult): Fields {
  expect(result, JSON.stringify(result.content)).not.toHaveProperty('isError')
  return parseFields(result.structuredContent)
}

export function errorOf(result: CallToolResult): unknown {
  expect(result.isError).toBe(true)
  return result._meta?.[ERROR_KEY]
}

function parseFields(value: unknown): Fields {
  return value as Fields
}

function newClient(mode: Mode): Client {
  return new Client({ name: 'airlock-test', version: '1' }, { versionNegotiation: { mode } })
}
