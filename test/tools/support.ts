import { Airlock, type AuditRecord, type Sandbox, type ToolInput } from '@airlock/sdk'
import { ModelUpstream, type UpstreamStep } from '../support/model-upstream.ts'
import { startServer, type TestServer } from '../support/server.ts'

export const CANARY = 'ghp-canary-7f3a9b2c4d5e6f708192a3b4c5d6e7f8'

/** A server with a service in a process of its own. */
export interface ToolServer {
  readonly server: TestServer
  readonly service: ModelUpstream
  readonly admin: Airlock
  readonly developer: Airlock
  readonly origin: string
  stop(): Promise<void>
}

export async function startToolServer(): Promise<ToolServer> {
  const service = await ModelUpstream.start()
  const env = { AIRLOCK_EGRESS_ALLOW_PRIVATE: `127.0.0.1:${service.port}` }
  const server = await startServer({ env })
  const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  const developer = new Airlock({ url: server.url, apiKey: server.developerKey })
  const origin = `http://127.0.0.1:${service.port}`
  await admin.secrets.put('service', { value: CANARY, origin })
  const stop = async () => {
    await server.stop()
    await service.stop()
  }
  return { server, service, admin, developer, origin, stop }
}

const string = { type: 'string' } as const

/** Reads an issue. */
export function issueTool(origin: string, more: Partial<ToolInput> = {}): ToolInput {
  return {
    description: 'Reads an issue.',
    origin,
    method: 'GET',
    path: '/repos/{owner}/{repo}/issues/{number}',
    query: ['state'],
    parameters: {
      properties: { owner: string, repo: string, number: { type: 'integer', minimum: 1 }, state: string },
      required: ['owner', 'repo', 'number'],
    },
    scope: ['/repos/acme/*/issues/*'],
    credential: { secret: 'service' },
    ...more,
  }
}

export const ISSUE = { owner: 'acme', repo: 'tools', number: 7 }

/** Puts the policy that names these tools, and no other. */
export async function allow(admin: Airlock, ...tools: readonly string[]): Promise<void> {
  const about = { id: 'tools', kind: 'tool', effect: 'allow', risk: 'low', reason: 'Tested.' } as const
  const rule = { ...about, match: { tools: [...tools] } }
  await admin.policies.put({ name: 'tools', rules: tools.length === 0 ? [] : [rule] })
}

export interface Answer {
  readonly exitCode: number | null
  readonly out: string
  readonly err: string
}

/** Calls by `airlock-tool`. */
export async function callTool(box: Sandbox, name: string, params: unknown = ISSUE): Promise<Answer> {
  const { exitCode, stdout, stderr } = await box.run(['airlock-tool', name, JSON.stringify(params)])
  return { exitCode, out: stdout, err: stderr }
}

/** Records of calls, oldest first. */
export async function callRecords(admin: Airlock, sandbox: string): Promise<readonly AuditRecord[]> {
  const { items } = await admin.audit.events({ point: 'tool.call', sandbox, limit: 200 })
  return items.toReversed()
}

/** An answer of the service. */
export function answer(status: string, body: string, headers = 'content-type: application/json\r\n'): UpstreamStep {
  return { send: `HTTP/1.1 ${status}\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}` }
}

/** A program that calls tools on connections that it keeps. */
export const CLIENT = `
const { readFileSync } = require('node:fs'); const { request, Agent } = require('node:http');
const agent = new Agent({ keepAlive: true, maxSockets: 6 });
const token = readFileSync('/run/airlock/token', 'utf8').trim();
const call = (tool, params) => new Promise((resolve, reject) => {
  const body = JSON.stringify({ tool, params });
  const headers = { host: 'airlock', authorization: 'Bearer ' + token, 'content-length': Buffer.byteLength(body) };
  request({ socketPath: process.env.AIRLOCK_TOOLS_SOCKET, agent, method: 'POST', path: '/v1/tools/call', headers }, (r) => {
    let text = ''; r.setEncoding('utf8').on('data', (t) => text += t).on('end', () => resolve(JSON.parse(text)));
  }).on('error', reject).end(body);
});
`
