import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

/** A step of the upstream on a connection, once it has a request whole. */
export type UpstreamStep =
  | { readonly send: string }
  /** Until the test says that word. */
  | { readonly wait: string }
  /** Again and again, until the connection ends. */
  | { readonly every: number; readonly again: string }
  /** Bytes in chunks; counted as the other side takes them. `of`: one chunk; each is such a text. */
  | { readonly flood: number; readonly of?: string }
  | { readonly end: 'close' | 'reset' }

export interface SeenRequest {
  readonly connection: number
  /** Byte by byte. */
  readonly head: string
  readonly body: string
}

export interface SeenConnection {
  readonly id: number
  readonly isOpen: boolean
  /** Bytes of floods that were taken. */
  readonly taken: number
}

export interface Seen {
  readonly requests: readonly SeenRequest[]
  readonly connections: readonly SeenConnection[]
}

export type ToUpstream =
  | { readonly type: 'next'; readonly steps: readonly UpstreamStep[] }
  | { readonly type: 'say'; readonly word: string }
  | { readonly type: 'seen' }
export type FromUpstream =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'noted' }
  | { readonly type: 'seen'; readonly seen: Seen }

const USUAL = '{"id":"1","choices":[]}'
const USUAL_ANSWER: readonly UpstreamStep[] = [
  { send: `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${USUAL.length}\r\n\r\n${USUAL}` },
]
const PIECE = Buffer.alloc(65_536, 'x')

/** An upstream that writes down what it got, byte by byte, and answers by a script. It parses as little as it can. */
class Upstream {
  readonly #scripts: (readonly UpstreamStep[])[] = []
  readonly #requests: SeenRequest[] = []
  readonly #connections: { id: number; isOpen: boolean; taken: number }[] = []
  readonly #waiting = new Map<string, () => void>()
  readonly #said = new Set<string>()

  hear(message: ToUpstream): void {
    if (message.type === 'next') {
      this.#scripts.push(message.steps)
      tell({ type: 'noted' })
    } else if (message.type === 'seen')
      tell({ type: 'seen', seen: { requests: this.#requests, connections: this.#connections } })
    else {
      this.#said.add(message.word)
      this.#waiting.get(message.word)?.()
    }
  }

  accept(socket: Socket): void {
    const seen = { id: this.#connections.length, isOpen: true, taken: 0 }
    this.#connections.push(seen)
    socket.on('error', () => {})
    socket.on('close', () => (seen.isOpen = false))
    let got = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      got = Buffer.concat([got, chunk])
      const whole = takeRequest(got)
      if (whole === undefined) return
      got = got.subarray(whole.length)
      this.#requests.push({ connection: seen.id, head: whole.head, body: whole.body })
      void this.#answer(socket, seen, this.#scripts.shift() ?? USUAL_ANSWER)
    })
  }

  async #answer(socket: Socket, seen: { taken: number }, steps: readonly UpstreamStep[]): Promise<void> {
    for (const step of steps) {
      if ('send' in step) socket.write(step.send)
      else if ('wait' in step) await this.#wait(step.wait)
      else if ('again' in step) repeat(socket, step)
      else if ('flood' in step) await flood(socket, seen, step)
      else if (step.end === 'reset') socket.resetAndDestroy()
      else socket.end()
    }
  }

  async #wait(word: string): Promise<void> {
    if (this.#said.has(word)) return
    await new Promise<void>((resolve) => this.#waiting.set(word, resolve))
  }
}

/** A request, when all of it is there. Without a length it has no body: what follows is the next request. */
function takeRequest(
  bytes: Buffer,
): { readonly head: string; readonly body: string; readonly length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.subarray(0, end + 4).toString('latin1')
  const length = end + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  if (bytes.length < length) return undefined
  return { head, body: bytes.subarray(end + 4, length).toString('utf8'), length }
}

function repeat(socket: Socket, { every, again }: { readonly every: number; readonly again: string }): void {
  const timer = setInterval(() => socket.write(again), every)
  socket.once('close', () => clearInterval(timer))
}

async function flood(
  socket: Socket,
  seen: { taken: number },
  { flood: bytes, of }: { readonly flood: number; readonly of?: string },
): Promise<void> {
  const piece = of === undefined ? PIECE : Buffer.from(of)
  const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
  for (let left = bytes; left > 0 && !socket.destroyed; left -= piece.length) {
    // The callback comes too when the connection ends, with an error.
    await new Promise<void>((resolve) => void socket.write(chunk, () => resolve()))
    seen.taken += piece.length
  }
}

function tell(message: FromUpstream): void {
  process.send?.(message)
}

const upstream = new Upstream()
const [cert, key] = process.argv.slice(2)
const accept = (socket: Socket) => upstream.accept(socket)
const server: Server =
  cert === undefined || key === undefined
    ? createServer(accept)
    : createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, accept)
process.on('message', (message: ToUpstream) => upstream.hear(message))
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => tell({ type: 'listening', port: (server.address() as AddressInfo).port }))
