import { ERRORS } from '@airlock/contract'
import { type Address, connectTo, LineSocket, MAX_LINE_BYTES } from '@airlock/wire'
import { recorderReply } from './protocol.ts'

const MAX_SENT = 1024
const MAX_WAITING = 16 * 1024
const FIRST_BACKOFF_MS = 25
const LAST_BACKOFF_MS = 1000

/** How a request ended. After `lost` and `timeout` the recorder may or may not have done it. */
export type Outcome =
  | { readonly type: 'ok'; readonly result: unknown }
  | { readonly type: 'error'; readonly code: string; readonly message: string }
  /** It was sent, and the connection died before the answer. */
  | { readonly type: 'lost' }
  | { readonly type: 'timeout' }

interface Entry {
  /** Made when it is sent, for what it says may depend on how long it waited. */
  readonly body: () => object
  readonly onWritten: (() => void) | undefined
  readonly settle: (outcome: Outcome) => void
  settled: boolean
}

/**
 * One connection to the recorder, opened again whenever it breaks. Requests are pipelined, at most 1,024 without an
 * answer; more wait their turn. It never sends a request twice: that is for the caller to decide.
 */
export class RecorderLink {
  readonly #address: Address
  readonly #waiting: Entry[] = []
  readonly #sent = new Map<number, Entry>()
  #connection: LineSocket | undefined
  #retry: NodeJS.Timeout | undefined
  #backoffMs = FIRST_BACKOFF_MS
  #nextId = 1
  #connections = 0
  #closed = false

  constructor(address: Address) {
    this.#address = address
    this.#connect()
  }

  /** How often it was connected so far. */
  get connections(): number {
    return this.#connections
  }

  /** `onWritten` is called, maybe, before it ends. */
  async request(body: () => object, timeoutMs: number, onWritten?: () => void): Promise<Outcome> {
    if (this.#closed || this.#waiting.length >= MAX_WAITING) return failed('The recorder takes no more requests.')
    return new Promise<Outcome>((resolve) => {
      const timer = setTimeout(() => entry.settle({ type: 'timeout' }), timeoutMs)
      const entry: Entry = {
        body,
        onWritten,
        settled: false,
        settle: (outcome) => {
          entry.settled = true
          clearTimeout(timer)
          resolve(outcome)
        },
      }
      this.#waiting.push(entry)
      this.#pump()
    })
  }

  /** What was just asked is under way before the caller does anything else. */
  hurry(): void {
    this.#connection?.hurry()
  }

  /** Ends what is under way as lost. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#retry)
    this.#connection?.destroy()
    for (const entry of [...this.#sent.values(), ...this.#waiting]) entry.settle({ type: 'lost' })
    this.#waiting.length = 0
    this.#sent.clear()
  }

  #connect(): void {
    const socket = connectTo(this.#address)
    const connection = new LineSocket(socket, {
      onLine: (line) => this.#answer(line, connection),
      onClose: () => this.#onClose(connection),
    })
    socket.on('connect', () => {
      this.#backoffMs = FIRST_BACKOFF_MS
      this.#connections += 1
      this.#connection = connection
      this.#pump()
    })
    if (this.#closed) connection.destroy()
  }

  #onClose(connection: LineSocket): void {
    if (this.#connection === connection) {
      this.#connection = undefined
      const entries = [...this.#sent.values()]
      this.#sent.clear()
      for (const entry of entries) entry.settle({ type: 'lost' })
    }
    if (this.#closed) return
    this.#retry = setTimeout(() => this.#connect(), this.#backoffMs)
    this.#backoffMs = Math.min(this.#backoffMs * 2, LAST_BACKOFF_MS)
  }

  #pump(): void {
    while (this.#connection?.isOpen && this.#sent.size < MAX_SENT) {
      const entry = this.#waiting.shift()
      if (!entry) return
      if (!entry.settled) this.#send(entry, this.#connection)
    }
  }

  #send(entry: Entry, connection: LineSocket): void {
    const id = this.#nextId++
    const line = JSON.stringify({ id, ...entry.body() })
    if (Buffer.byteLength(line) > MAX_LINE_BYTES)
      return entry.settle({ type: 'error', code: 'body_too_large', message: ERRORS.body_too_large.message })
    this.#sent.set(id, entry)
    connection.send(line)
  }

  /** An answer to something that timed out finds nobody. An answer that is not understood ends the connection. */
  #answer(line: string, connection: LineSocket): void {
    const reply = parseReply(line)
    if (!reply || reply.type === 'line') return connection.destroy()
    const entry = this.#sent.get(reply.id)
    if (reply.type === 'written') return entry?.onWritten?.()
    this.#sent.delete(reply.id)
    entry?.settle(reply)
    this.#pump()
  }
}

function parseReply(line: string) {
  try {
    return recorderReply.safeParse(JSON.parse(line)).data
  } catch {
    // Not JSON: the same as a reply of no known form.
    return undefined
  }
}

function failed(message: string): Outcome {
  return { type: 'error', code: 'evidence_unavailable', message }
}
