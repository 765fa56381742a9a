import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { AgentFault, toFaultAnswer } from './agent-fault.ts'
import { parseRegister, parseStep, parseToken } from './agent-request.ts'
import type { SessionAgent } from './session-agent.ts'

const BODY_BYTES = 4 * 1024 * 1024
/** A caller that is slower than that to say what it wants is cut off; an answer may take as long as a step. */
const REQUEST_MS = 30_000
const HEADERS_MS = 10_000
const CONNECTIONS = 256

export interface AgentAddress {
  readonly host: string
  readonly port: number
}

export interface RunningServer {
  readonly address: AgentAddress
  close(): Promise<void>
}

/** Serves the agent, and says where: port 0 is any. */
export async function serveAgent(agent: SessionAgent, listen: AgentAddress, health: object): Promise<RunningServer> {
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: HEADERS_MS }, (request, response) => {
    void respond(response, () => route(agent, request, health))
  })
  server.maxConnections = CONNECTIONS
  server.listen(listen.port, listen.host)
  await once(server, 'listening')
  return { address: addressOf(server, listen), close: () => close(server) }
}

async function route(agent: SessionAgent, request: IncomingMessage, health: object): Promise<object> {
  const path = new URL(request.url ?? '', 'http://agent').pathname
  if (request.method === 'GET' && path === '/v1/health') return health
  if (request.method !== 'POST') throw noRoute()
  if (path === '/v1/sessions') return await agent.register(parseRegister(await readJson(request)), tokenOf(request))
  if (path === '/v1/steps') return await agent.step(parseStep(await readJson(request)), tokenOf(request))
  return await routeVerb(agent, request, path)
}

async function routeVerb(agent: SessionAgent, request: IncomingMessage, path: string): Promise<object> {
  const [, sessionId = '', verb = ''] = /^\/v1\/sessions\/([^/]{1,384})\/([a-z]+)$/.exec(path) ?? []
  if (verb !== 'terminate' && verb !== 'interrupt' && verb !== 'restart') throw noRoute()
  return await agent[verb](decode(sessionId), tokenOf(request))
}

function tokenOf(request: IncomingMessage): string {
  return parseToken(request.headers['x-session-token'])
}

async function respond(response: ServerResponse, work: () => Promise<object>): Promise<void> {
  try {
    send(response, 200, await work())
  } catch (error) {
    const { status, body } = toFaultAnswer(error)
    // What is left of a body is read and dropped by Node, for as long as a request may take.
    send(response, status, body)
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed) return
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES) throw tooLarge()
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const buffer = Buffer.from(parseChunk(chunk))
    bytes += buffer.length
    if (bytes > BODY_BYTES) throw tooLarge()
    chunks.push(buffer)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new AgentFault('invalid_request', 'the body is not JSON')
  }
}

/** A stream without an encoding gives bytes. */
function parseChunk(chunk: unknown): Uint8Array {
  return chunk as Uint8Array
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw noRoute()
  }
}

function noRoute(): AgentFault {
  return new AgentFault('route_not_found', 'there is no such route')
}

function tooLarge(): AgentFault {
  return new AgentFault('body_too_large', `a body has at most ${BODY_BYTES} bytes`)
}

function addressOf(server: Server, { host }: AgentAddress): AgentAddress {
  const address = server.address()
  return { host, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
