import { request } from 'node:http'
import { AirlockError, FOLLOW_PROTOCOL, followAnswer, type FollowedCall, isErrorCode } from '@airlock/contract'
import type { Frame } from '@airlock/contract/guest'
import { requestTo } from '../address.ts'
import type { WireClientOptions } from '../client.ts'
import { askOnceMore, BrokenConnection } from '../kept-connection.ts'
import { type OutputItem, parseOutput } from './output-item.ts'
import { FrameSocket } from './frame-socket.ts'

const ANSWER_MS = 30_000
const IDLE_LINES = 32

export type FollowOptions = Pick<WireClientOptions, 'address' | 'peer' | 'unavailable'>

/**
 * Commands and steps that are asked for and followed in one: frames over connections that are kept, because HTTP for each
 * would cost more than all the rest of the way. A connection serves one call at a time, so whoever reads slowly holds back
 * nobody else. Faults are those of `WireClient`.
 */
export class FollowedCalls {
  readonly #options: FollowOptions
  readonly #idle: FrameSocket[] = []

  constructor(options: FollowOptions) {
    this.#options = options
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
      throw this.#options.unavailable(error)
    }
  }

  close(): void {
    for (const line of this.#idle.splice(0)) line.destroy()
  }

  async #askFresh(call: FollowedCall, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>> {
    return this.#askOn(await dial(this.#options), call, signal)
  }

  async #askOn(line: FrameSocket, call: FollowedCall, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>> {
    const leave = () => line.destroy()
    const late = setTimeout(leave, ANSWER_MS)
    signal.addEventListener('abort', leave)
    try {
      line.send(call)
      const refusal = refusalOf(await line.next(), this.#options.peer)
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

  async *#items(line: FrameSocket, signal: AbortSignal, leave: () => void): AsyncGenerator<OutputItem> {
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
      throw this.#options.unavailable(error)
    } finally {
      signal.removeEventListener('abort', leave)
      if (!isWhole) line.destroy()
    }
  }

  #keep(line: FrameSocket): void {
    if (this.#idle.length >= IDLE_LINES) return line.destroy()
    this.#idle.push(line)
    line.onceBroken(() => {
      const at = this.#idle.indexOf(line)
      if (at >= 0) this.#idle.splice(at, 1)
    })
  }
}

async function dial({ address, peer, unavailable }: FollowOptions): Promise<FrameSocket> {
  return new Promise<FrameSocket>((resolve, reject) => {
    const headers = { connection: 'upgrade', upgrade: FOLLOW_PROTOCOL }
    const asked = request({ ...requestTo(address), path: '/', headers, agent: false })
    const late = setTimeout(() => asked.destroy(unavailable(undefined)), ANSWER_MS)
    asked.once('upgrade', (_response, socket) => resolve(new FrameSocket(socket)))
    asked.once('response', () => asked.destroy(new AirlockError('internal', `The ${peer} does not follow.`)))
    asked.once('error', reject)
    asked.once('close', () => clearTimeout(late))
    asked.end()
  })
}

/** Why it was not taken; undefined when it was. */
function refusalOf(frame: Frame, peer: string): AirlockError | undefined {
  const answer = followAnswer.safeParse(frame.kind === 'message' ? frame.json : undefined)
  if (!answer.success) return new AirlockError('internal', `The ${peer} answered something that was not agreed.`)
  if ('taken' in answer.data) return undefined
  const { code, message } = answer.data.error
  return new AirlockError(isErrorCode(code) ? code : 'internal', message)
}
