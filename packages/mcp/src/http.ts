import { newId } from '@airlock/std'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { createServer, type McpOptions, type RunningCall } from './server.ts'

export interface HttpExchange extends Omit<McpOptions, 'onCall'> {
  readonly method: string
  readonly headers: Headers
  readonly body: string | undefined
  /** Aborts when the client is gone or the server stops. */
  readonly signal: AbortSignal
  /** Whose key it was: nobody else reaches what it called. */
  readonly owner: string
}

const SESSION = 'mcp-session-id'
/** A request has one; nobody looks at it. */
const ADDRESS = 'http://localhost/mcp'
const INVALID_REQUEST = -32600

/**
 * The streamable HTTP transport, in the revision that each request speaks. A request is served by itself, and nothing
 * outlives its answer. Who asks, and whether he may, was settled before.
 *
 * Revision 2026-07-28 cancels a call by closing its connection. Those before it send another request that names it; the
 * session that `initialize` gives tells the calls of one client from those of another with the same key, and is good for
 * nothing else.
 */
export class McpHttp {
  /** The calls that run now: never more than there are connections. */
  readonly #running = new Map<string, RunningCall>()

  async answer(exchange: HttpExchange): Promise<Response> {
    const { method, headers, body, signal } = exchange
    const message = parseMessage(body)
    if (message.isBatch) return refusal('One message at a time: batches are not taken.')
    if (message.cancels !== undefined) this.#running.get(callName(exchange, message.cancels))?.cancel()
    const onCall = (call: RunningCall): void => this.#note(callName(exchange, call.id), call)
    const handler = createMcpHandler(() => createServer({ ...exchange, onCall }))
    const request = new Request(ADDRESS, { method, headers, signal, ...(body === undefined ? {} : { body }) })
    const response = await handler.fetch(request)
    if (message.initializes && response.ok) response.headers.set(SESSION, newId('mcp'))
    return response
  }

  /** When all calls have ended, those that were cancelled too. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#running.values()].map(async (call) => call.ended))
  }

  #note(name: string, call: RunningCall): void {
    this.#running.set(name, call)
    const forget = (): void => {
      if (this.#running.get(name) === call) this.#running.delete(name)
    }
    void call.ended.then(forget, forget)
  }
}

/** A client without a session cannot cancel, for its calls cannot be told apart: each is then a name of its own. */
function callName(exchange: HttpExchange, id: unknown): string {
  const session = exchange.headers.get(SESSION) ?? newId('none')
  return JSON.stringify([exchange.owner, session, id])
}

interface Message {
  /** The protocol had them for one revision. One request would be any number of calls. */
  readonly isBatch: boolean
  readonly initializes: boolean
  readonly cancels: unknown
}

/** The little that matters here of a message that the library will parse. */
function parseMessage(body: string | undefined): Message {
  try {
    const message = JSON.parse(body ?? '') as { method?: unknown; params?: { requestId?: unknown } }
    const { method, params } = message
    const cancels = method === 'notifications/cancelled' ? params?.requestId : undefined
    return { isBatch: Array.isArray(message), initializes: method === 'initialize', cancels }
  } catch {
    // Not a message: the library answers that.
    return { isBatch: false, initializes: false, cancels: undefined }
  }
}

function refusal(message: string): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code: INVALID_REQUEST, message } }, { status: 400 })
}
