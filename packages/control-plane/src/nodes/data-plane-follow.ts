import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import { AirlockError, FOLLOW_PROTOCOL, followAnswer, type FollowedCall, isErrorCode } from '@airlock/contract'
import { encodeMessage, type Frame, FrameDecoder } from '@airlock/contract/guest'
import { askOnceMore, BrokenConnection } from '@airlock/wire'
import { type OutputItem, parseOutput } from './data-plane-output.ts'

const ANSWER_MS = 30_000
const IDLE_LINES = 32
/** Frames that nobody has taken yet; beyond this the other side waits. */
const READ_AHEAD = 16

/**
 * Commands and steps that are asked for and followed in one: frames over connections that are kept, because HTTP for each
 * would cost more than all the rest of the way. A connection serves one call at a time, so whoever reads slowly holds back
 * nobody else. Faults are those of `DataPlaneClient`.
 */
export class FollowedCalls {
  readonly #socketPath: string
  readonly #idle: Line[] = []

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  /** Answers once it was taken, with what it says and how it ends. Precondition: asking twice is asking once. */
  async ask(call: FollowedCall, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>> {
    const kept = this.#idle.pop()
    const again = async () => {
      signal.throwIfAborted()
      return this.#askFresh(call, signal)
    }
    try {
      if (kept) return await askOnceMore(async () => this.#askOn(kept, call, signal), again)
      return await this.#askFresh(call, signal)
    } catch (error) {
      if (error instanceof AirlockError) throw error
      signal.throwIfAborted()
      throw new AirlockError('data_plane_unavailable', undefined, { cause: error })
    }
  }

  close(): void {
    for (const line of this.#idle.splice(0)) line.destroy()
  }

  async #askFresh(call: FollowedCall, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>> {
    return this.#askOn(await connectLine(this.#socketPath), call, signal)
  }

  async #askOn(line: Line, call: FollowedCall, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>> {
    const leave = () => line.destroy()
    const late = setTimeout(leave, ANSWER_MS)
    signal.addEventListener('abort', leave)
    try {
      line.send(call)
      const refusal = refusalOf(await line.next())
      if (!refusal) return this.#items(line, signal, leave)
      signal.removeEventListener('abort', leave)
      this.#keep(line)
      throw refusal
    } catch (error) {
      signal.removeEventListener('abort', leave)
      throw error
    } finally {
      clearTimeout(late)
    }
  }

  async *#items(line: Line, signal: AbortSignal, leave: () => void): AsyncGenerator<OutputItem> {
    let isWhole = false
    try {
      while (!isWhole) {
        const item = parseOutput(await line.next())
        isWhole = item.kind === 'end'
        if (isWhole) this.#keep(line)
        yield item
      }
    } catch (error) {
      if (!(error instanceof BrokenConnection)) throw error
      signal.throwIfAborted()
      throw new AirlockError('data_plane_unavailable', undefined, { cause: error })
    } finally {
      signal.removeEventListener('abort', leave)
      if (!isWhole) line.destroy()
    }
  }

  #keep(line: Line): void {
    if (this.#idle.length >= IDLE_LINES) return line.destroy()
    this.#idle.push(line)
    line.onceBroken(() => {
      const at = this.#idle.indexOf(line)
      if (at >= 0) this.#idle.splice(at, 1)
    })
  }
}

/** One connection. */
class Line {
  readonly #socket: Duplex
  readonly #decoder = new FrameDecoder()
  readonly #frames: Frame[] = []
  #wake: (() => void) | undefined
  #onBroken: (() => void) | undefined
  #fault: unknown

  constructor(socket: Duplex) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('end', () => socket.destroy())
    socket.on('error', (error) => (this.#fault ??= error))
    socket.on('close', () => {
      this.#fault ??= new AirlockError('data_plane_unavailable')
      this.#wake?.()
      this.#onBroken?.()
    })
  }

  send(message: unknown): void {
    if (this.#socket.writable) this.#socket.write(encodeMessage(message))
  }

  /** Throws `BrokenConnection` when no more will come. */
  async next(): Promise<Frame> {
    for (;;) {
      const frame = this.#frames.shift()
      if (frame) {
        if (this.#frames.length === 0 && this.#socket.isPaused()) this.#socket.resume()
        return frame
      }
      if (this.#fault !== undefined) throw new BrokenConnection(this.#fault)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Only while nobody asks on it. */
  onceBroken(onBroken: () => void): void {
    this.#onBroken = onBroken
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    try {
      this.#frames.push(...this.#decoder.push(chunk))
    } catch (cause) {
      this.#fault = new AirlockError('internal', 'The output stream of the data plane is broken.', { cause })
      this.#socket.destroy()
    }
    if (this.#frames.length > READ_AHEAD) this.#socket.pause()
    this.#wake?.()
  }
}

async function connectLine(socketPath: string): Promise<Line> {
  return new Promise<Line>((resolve, reject) => {
    const headers = { connection: 'upgrade', upgrade: FOLLOW_PROTOCOL }
    const asked = request({ socketPath, path: '/', headers, agent: false })
    const late = setTimeout(() => asked.destroy(new AirlockError('data_plane_unavailable')), ANSWER_MS)
    asked.once('upgrade', (_response, socket) => resolve(new Line(socket)))
    asked.once('response', () => asked.destroy(new AirlockError('internal', 'The data plane does not follow.')))
    asked.once('error', reject)
    asked.once('close', () => clearTimeout(late))
    asked.end()
  })
}

/** Why it was not taken; undefined when it was. */
function refusalOf(frame: Frame): AirlockError | undefined {
  const answer = followAnswer.safeParse(frame.kind === 'message' ? frame.json : undefined)
  if (!answer.success) return new AirlockError('internal', 'The data plane answered something that was not agreed.')
  if ('taken' in answer.data) return undefined
  const { code, message } = answer.data.error
  return new AirlockError(isErrorCode(code) ? code : 'internal', message)
}
