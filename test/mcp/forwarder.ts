import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ToolCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

interface Options {
  readonly target: string
  readonly key: string
  /** Calls of one tool that are to be calls of another. */
  readonly aliases?: Readonly<Record<string, ToolCall>>
}

/**
 * Stands before a server for a client that cannot send a key: adds it, and changes nothing else, Host and Origin least
 * of all. A call of an alias reaches the server as the call that it stands for, in body and headers.
 */
export class Forwarder implements AsyncDisposable {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(options: Options): Promise<Forwarder> {
    const server = createServer((from, to) => void forward(from, to, options))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new Forwarder(server)
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

async function forward(from: IncomingMessage, to: ServerResponse, options: Options): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of from as AsyncIterable<Buffer>) chunks.push(chunk)
  const { body, name } = translate(Buffer.concat(chunks), options.aliases ?? {})
  const headers = { ...from.headers, authorization: `Bearer ${options.key}`, 'content-length': String(body.length) }
  if (name !== undefined && 'mcp-name' in headers) headers['mcp-name'] = name
  delete headers['transfer-encoding']
  const sent = request(new URL(from.url ?? '/', options.target), { method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(to)
  })
  sent.on('error', () => to.destroy())
  to.on('close', () => sent.destroy())
  sent.end(body)
}

interface Message {
  readonly method?: string
  readonly params?: { readonly name?: string }
}

function translate(bytes: Buffer, aliases: Readonly<Record<string, ToolCall>>): { body: Buffer; name?: string } {
  const message = parseMessage(bytes)
  const alias = message?.method === 'tools/call' ? aliases[message.params?.name ?? ''] : undefined
  if (!message || !alias) return { body: bytes }
  const params = { ...message.params, ...alias }
  return { body: Buffer.from(JSON.stringify({ ...message, params })), name: alias.name }
}

function parseMessage(bytes: Buffer): Message | undefined {
  try {
    return JSON.parse(bytes.toString('utf8')) as Message
  } catch {
    // Something else than a message is passed on as it is.
    return undefined
  }
}
