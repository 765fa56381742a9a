import { chmodSync, chownSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { AirlockError, controlCall, describeIssues, toAirlockError } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { DoorControl } from '../doors/door-control.ts'

interface DoorsServerOptions {
  readonly control: DoorControl
  readonly path: string
  /** Who may open the socket besides us. */
  readonly uid: number
  readonly log: Log
}

const MAX_BODY = 16 * 1024
const MAX_CONNECTIONS = 256

/**
 * Hears the doors process, on a socket that nobody else can open: which sandbox a request is from, it says, and only it.
 * Resolves with how to stop. Precondition: root, for the socket changes hands.
 */
export async function listenToDoors({ control, path, uid, log }: DoorsServerOptions): Promise<() => void> {
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 10_000 }, (request, response) => {
    answer(control, request).then(
      (value) => send(response, 200, value),
      (error: unknown) => refuse(response, error, log),
    )
  })
  server.maxConnections = MAX_CONNECTIONS
  rmSync(path, { force: true })
  // The umask of this process keeps others out until the socket has its owner.
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
  chmodSync(path, 0o600)
  chownSync(path, uid, uid)
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

async function answer(control: DoorControl, request: IncomingMessage): Promise<unknown> {
  if (request.method !== 'POST' || request.url !== '/control') throw new AirlockError('route_not_found')
  const parsed = controlCall.safeParse(JSON.parse(await readText(request)))
  if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
  return control.answer(parsed.data)
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_BODY) throw new AirlockError('body_too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function refuse(response: ServerResponse, thrown: unknown, log: Log): void {
  const { code, message, status } = toAirlockError(thrown)
  if (code === 'internal') log.error('a request by a door failed', { error: thrown })
  if (!response.destroyed) send(response, status, { error: { code, message } })
}

function send(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
