import type { Socket } from 'node:net'
import { type Followed, type RecorderReply, recorderRequest, type RecorderRequest } from '@airlock/audit'
import { AirlockError, toAirlockError } from '@airlock/contract'
import { assertNever, type Log } from '@airlock/std'
import { LineSocket, listenForConnections, type PrivateListener } from '@airlock/wire'
import { z } from 'zod'
import type { Recorder } from './recorder.ts'

/** A client that follows a chain has a connection of its own. Beyond it the one that was idle for longest closes. */
const MAX_CLIENTS = 512
/** Connections that wait for one that closes. */
const SPARE_CLIENTS = 64
/** Longest time for the rest of a request. */
const LINE_MS = 5_000
const MAX_UNANSWERED = 2048
/** A reader that takes nothing of an export for so long has its connection ended. */
const STALLED_MS = 60_000

export interface RecorderServerOptions {
  readonly path: string
  /** Who may connect, beside root. */
  readonly uid: number | null
  /** Who is calling: whoever comes by this socket. */
  readonly process: 'control-plane' | 'data-plane'
  readonly recorder: Recorder
  /** Connections wait for it. */
  readonly ready: Promise<void>
  readonly log: Log
}

/** One socket of the recorder, for one process. Only the control plane may read. */
export class RecorderServer {
  readonly #options: RecorderServerOptions
  /** Those that asked last are last. */
  readonly #connections = new Set<Connection>()

  static async listen(options: RecorderServerOptions): Promise<PrivateListener> {
    const server = new RecorderServer(options)
    const { path, uid, ready } = options
    const onConnection = (socket: Socket) => void ready.then(() => server.#serve(socket))
    return listenForConnections({ unix: path, uid }, { maxConnections: MAX_CLIENTS + SPARE_CLIENTS, onConnection })
  }

  private constructor(options: RecorderServerOptions) {
    this.#options = options
  }

  #serve(socket: Socket): void {
    const gone = new AbortController()
    const lines = new LineSocket(socket, {
      lineMs: LINE_MS,
      onClose: () => {
        this.#connections.delete(connection)
        gone.abort()
      },
      onLine: (line) => {
        // It asked last now.
        this.#connections.delete(connection)
        this.#connections.add(connection)
        connection.unanswered += 1
        if (connection.unanswered >= MAX_UNANSWERED) lines.pause()
        void this.#answer(line, connection).finally(() => {
          connection.unanswered -= 1
          if (connection.unanswered < MAX_UNANSWERED / 2) lines.resume()
        })
      },
    })
    const connection: Connection = { lines, gone: gone.signal, unanswered: 0 }
    if (this.#makeRoom()) this.#connections.add(connection)
    else lines.destroy()
    lines.resume()
  }

  /** False when every connection waits for an answer. */
  #makeRoom(): boolean {
    if (this.#connections.size < MAX_CLIENTS) return true
    const idle = this.#connections.values().find(({ unanswered }) => unanswered === 0)
    if (!idle) return false
    this.#connections.delete(idle)
    idle.lines.destroy()
    return true
  }

  async #answer(line: string, client: Client): Promise<void> {
    const { lines } = client
    const request = parseRequest(line)
    // Without an id there is nothing to answer to: the other side is not one of ours.
    if (!request) return lines.destroy()
    try {
      if (!('op' in request)) throw new AirlockError('invalid_request', request.problem)
      const result = await this.#handle(request, client)
      reply(lines, { id: request.id, type: 'ok', result })
    } catch (error) {
      const { code, message } = toAirlockError(error)
      if (code === 'internal') this.#options.log.error('a request failed', { error })
      reply(lines, { id: request.id, type: 'error', code, message })
    }
    // Answers that nobody reads must not pile up: no further request is taken until they are read.
    if (lines.isBehind) await lines.drained()
  }

  async #handle(request: RecorderRequest, client: Client): Promise<unknown> {
    const { recorder } = this.#options
    this.#assertMay(request)
    switch (request.op) {
      case 'append':
        await this.#append(request, client)
        return null
      case 'settle':
        return recorder.settle(request.tenant, request)
      case 'quarantine':
        return recorder.quarantine(request.tenant, request)
      case 'follow':
        await sendLines(followedLines(recorder.follow(request.tenant, request, client.gone)), request.id, client)
        return null
      case 'export':
        await sendLines(recorder.export(request.tenant), request.id, client)
        return null
      case 'query':
        return recorder.query(request.tenant, request.query)
      case 'head':
        return recorder.head(request.tenant)
      case 'page':
        return recorder.page(request.tenant, request)
      case 'summary':
        return recorder.summary(request.tenant, request)
      case 'stats':
        return recorder.stats(request.tenant)
      default:
        return assertNever(request)
    }
  }

  #assertMay({ op }: RecorderRequest): void {
    if (op !== 'append' && this.#options.process !== 'control-plane')
      throw new AirlockError('forbidden', 'Only the control plane reads evidence.')
  }

  async #append(request: Extract<RecorderRequest, { op: 'append' }>, { lines }: Client): Promise<void> {
    const { id, rid, early, patient = false, record } = request
    const onWritten = early ? () => replyNow(lines, { id, type: 'written' }) : undefined
    await this.#options.recorder.append({ rid, process: this.#options.process, record, patient, onWritten })
  }
}

interface Client {
  readonly lines: LineSocket
  /** Aborts when the connection is closed. */
  readonly gone: AbortSignal
}

interface Connection extends Client {
  unanswered: number
}

async function* followedLines(source: AsyncIterable<Followed>): AsyncGenerator<string> {
  for await (const one of source) yield JSON.stringify(one)
}

/** As fast as they are taken; who takes nothing for a minute is let go. */
async function sendLines(source: AsyncIterable<string>, id: number, { lines }: Client): Promise<void> {
  for await (const line of source) {
    if (!lines.isOpen) return
    reply(lines, { id, type: 'line', line })
    if (!lines.isBehind) continue
    const stalled = setTimeout(() => lines.destroy(), STALLED_MS)
    await lines.drained()
    clearTimeout(stalled)
  }
}

function reply(lines: LineSocket, message: RecorderReply): void {
  lines.send(JSON.stringify(message))
}

/** Somebody can go on with what we know so far, and we go on to the disk. */
function replyNow(lines: LineSocket, message: RecorderReply): void {
  reply(lines, message)
  lines.hurry()
}

const identified = z.object({ id: z.int().min(0) })

function parseRequest(line: string): RecorderRequest | { readonly id: number; readonly problem: string } | undefined {
  try {
    const value: unknown = JSON.parse(line)
    const request = recorderRequest.safeParse(value)
    if (request.success) return request.data
    return { ...identified.parse(value), problem: z.prettifyError(request.error) }
  } catch {
    // Not JSON, or without an id.
    return undefined
  }
}
