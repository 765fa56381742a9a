import type { Socket } from 'node:net'
import {
  DOORS_PROTOCOL,
  fromDoors,
  type FromControlPlane,
  type FromDoors,
  MAX_DOOR_CALLS,
  toAirlockError,
} from '@airlock/contract'
import type { Log } from '@airlock/std'
import { LineSocket } from '@airlock/wire'
import type { DoorsNews } from '../doors/door-news.ts'
import type { DoorCalls } from '../doors/door-calls.ts'

/** The doors say hello within this time. */
const HELLO_MS = 5_000
/** Connections in one frame. */
const MAX_CUT = 1000
/** What the doors have cancelled may still be ending here. */
const MAX_UNDER_WAY = 2 * MAX_DOOR_CALLS

interface DoorsLineOptions {
  readonly calls: Pick<DoorCalls, 'answer' | 'greeted' | 'lost'>
  readonly log: Log
  readonly onClose: (line: DoorsLine) => void
}

/**
 * One connection of the doors process. It reads no faster than its answers are taken, and ends with the first frame that was
 * not agreed: the doors meet hostile bytes, so what comes from them is not believed to be well formed.
 */
export class DoorsLine {
  readonly #options: DoorsLineOptions
  readonly #lines: LineSocket
  readonly #underWay = new Map<number, AbortController>()
  readonly #hello: NodeJS.Timeout
  /** Null until it said hello. */
  #process: string | null = null

  constructor(socket: Socket, options: DoorsLineOptions) {
    this.#options = options
    this.#hello = setTimeout(() => socket.destroy(), HELLO_MS).unref()
    this.#lines = new LineSocket(socket, {
      onLine: (line) => this.#hear(line),
      onClose: () => this.#close(),
    })
    socket.resume()
  }

  push(news: DoorsNews): void {
    if (this.#process === null) return
    if (news.what !== 'cut') return this.#send({ type: 'changed', change: news })
    const { sandbox, connections } = news
    for (let at = 0; at < connections.length; at += MAX_CUT)
      this.#send({ type: 'cut', sandbox, connections: connections.slice(at, at + MAX_CUT) })
  }

  #hear(line: string): void {
    // What came in one piece with the frame that ended it.
    if (!this.#lines.isOpen) return
    const frame = parse(line)
    if (!frame) return this.#break('it said what was not agreed')
    if (frame.type === 'hello') return this.#greet(frame)
    if (this.#process === null) return this.#break('it said what was not agreed')
    switch (frame.type) {
      case 'ping':
        return this.#send({ type: 'pong' })
      case 'cancel':
        return this.#underWay.get(frame.id)?.abort()
      case 'call':
        return this.#call(frame, this.#process)
    }
  }

  /** The doors are told our protocol, also when it is another than theirs. */
  #greet({ protocol, process, modelCalls }: Extract<FromDoors, { type: 'hello' }>): void {
    if (this.#process !== null) return this.#break('it said hello twice')
    clearTimeout(this.#hello)
    this.#send({ type: 'hello', protocol: DOORS_PROTOCOL })
    if (protocol !== DOORS_PROTOCOL) return this.#lines.end()
    this.#process = process
    this.#options.calls.greeted({ process, modelCalls })
  }

  #call({ id, call }: Extract<FromDoors, { type: 'call' }>, process: string): void {
    if (this.#underWay.has(id) || this.#underWay.size >= MAX_UNDER_WAY) return this.#break('it asked too much')
    const gone = new AbortController()
    this.#underWay.set(id, gone)
    void this.#options.calls
      .answer(call, { process, line: this, signal: gone.signal })
      .then(
        (value): FromControlPlane => ({ type: 'answer', id, value }),
        (error: unknown) => this.#refusal(id, error, gone.signal),
      )
      .then((frame) => {
        this.#underWay.delete(id)
        this.#send(frame)
      })
  }

  /** The text of an error that is not ours is logged, and never sent. */
  #refusal(id: number, thrown: unknown, { aborted }: AbortSignal): FromControlPlane {
    const error = toAirlockError(thrown)
    if (error.code === 'internal' && !aborted) this.#options.log.error('a call of the doors failed', { error: thrown })
    const { code, message, hint, retryAfterS, approval } = error
    return { type: 'refusal', id, error: { code, message, hint, retryAfterS, approval } }
  }

  #send(frame: FromControlPlane): void {
    this.#lines.send(JSON.stringify(frame))
    if (!this.#lines.isBehind) return
    this.#lines.pause()
    void this.#lines.drained().then(() => this.#lines.resume())
  }

  #break(why: string): void {
    this.#options.log.error('closing the connection of the doors', { why })
    this.#lines.destroy()
  }

  #close(): void {
    clearTimeout(this.#hello)
    for (const gone of this.#underWay.values()) gone.abort()
    this.#options.calls.lost(this)
    this.#options.onClose(this)
  }
}

function parse(line: string): FromDoors | undefined {
  try {
    return fromDoors.safeParse(JSON.parse(line)).data
  } catch {
    // Not JSON: the same as a frame of no known form.
    return undefined
  }
}
