import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import {
  AirlockError,
  describeIssues,
  type FollowAnswer,
  followedCall,
  type FollowedCall,
  toAirlockError,
} from '@airlock/contract'
import { encodeMessage, type Frame, FrameDecoder } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'

/** That it was taken is told after this time at the latest; what is short is said in one piece with it. */
const TAKEN_MS = 3

export interface FollowServerOptions {
  /** Resolves once the call is taken, with how its output is read from the beginning. */
  readonly start: (call: FollowedCall) => Promise<(signal: AbortSignal) => AsyncIterable<Buffer>>
  readonly log: Log
}

/** Answers followed calls on one connection, one after another, until either side hangs up. */
export function serveFollowed(socket: Duplex, options: FollowServerOptions): void {
  const decoder = new FrameDecoder()
  const hungUp = new AbortController()
  let isAnswering = false
  socket.on('data', (chunk: Buffer) => {
    try {
      for (const frame of decoder.push(chunk)) {
        if (isAnswering) throw new AirlockError('invalid_request', 'A call came before the end of another.')
        isAnswering = true
        void answer(frame, new Answer(socket, hungUp.signal), options).finally(() => (isAnswering = false))
      }
    } catch (error) {
      options.log.error('a followed call makes no sense', { error })
      socket.destroy()
    }
  })
  socket.on('end', () => socket.destroy())
  // 'close' follows.
  socket.on('error', () => {})
  socket.on('close', () => hungUp.abort(new AirlockError('timeout', 'The caller hung up.')))
}

async function answer(frame: Frame, to: Answer, { start, log }: FollowServerOptions): Promise<void> {
  try {
    const output = await start(parseCall(frame))
    to.takeSoon()
    for await (const chunk of output(to.hungUp)) await to.say(chunk)
  } catch (error) {
    to.fail(error, log)
  }
}

function parseCall(frame: Frame): FollowedCall {
  const parsed = followedCall.safeParse(frame.kind === 'message' ? frame.json : undefined)
  if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
  return parsed.data
}

/** What one call is told. */
class Answer {
  readonly hungUp: AbortSignal
  readonly #socket: Duplex
  #isTaken = false
  #soon: NodeJS.Timeout | undefined

  constructor(socket: Duplex, hungUp: AbortSignal) {
    this.#socket = socket
    this.hungUp = hungUp
  }

  takeSoon(): void {
    this.#soon = setTimeout(() => this.#take(), TAKEN_MS)
  }

  async say(frame: Buffer): Promise<void> {
    this.#take()
    if (this.#write(frame) || this.hungUp.aborted) return
    // Whoever hung up reads no more, and aborts this.
    await once(this.#socket, 'drain', { signal: this.hungUp }).catch(() => undefined)
  }

  /** Once it was taken an error cannot be told any more: the connection breaks, and the reader sees that. */
  fail(cause: unknown, log: Log): void {
    clearTimeout(this.#soon)
    if (this.hungUp.aborted) return
    const { code, message } = toAirlockError(cause)
    if (code === 'internal') log.error('a call failed', { error: cause })
    if (this.#isTaken) this.#socket.destroy()
    else this.#answer({ error: { code, message } })
  }

  #take(): void {
    if (this.#isTaken) return
    clearTimeout(this.#soon)
    this.#isTaken = true
    this.#answer({ taken: true })
  }

  #answer(message: FollowAnswer): void {
    this.#write(encodeMessage(message))
  }

  /** What is said within one tick goes out as one write. */
  #write(frame: Buffer): boolean {
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork()
      process.nextTick(() => this.#socket.uncork())
    }
    return this.#socket.write(frame)
  }
}
