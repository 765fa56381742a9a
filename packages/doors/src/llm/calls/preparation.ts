import { Worker } from 'node:worker_threads'
import { AirlockError, isErrorCode } from '@airlock/contract'
import { type CallToPrepare, prepareCall, type PreparedCall } from './prepare-call.ts'
import type { Prepared } from './prepare-main.ts'
import { type Holder, Turns } from './turns.ts'

/** Bodies up to here are read at once: no content of this length takes longer than handing it to a thread and back. */
const TINY_BYTES = 1024
/** Larger bodies have threads of their own, so that a body up to here never waits for one of them. */
const SMALL_BYTES = 128 * 1024
const THREADS_OF_EACH = 2
/** Ten times what the longest text takes. A body that takes longer was made to. */
const MOST_MS = 5_000
const THREAD_MEMORY_MB = 768

/**
 * Reads and writes calls. Bodies that could keep the process busy are read in threads, for it serves every sandbox of the node. A
 * thread that takes too long, or too much memory, is ended with its call.
 */
export class Preparation {
  readonly #program: URL
  readonly #mostMs: number
  readonly #small = new Turns(THREADS_OF_EACH)
  readonly #large = new Turns(THREADS_OF_EACH)
  readonly #idle: Worker[] = []

  /** `program`: the text of `prepare-main`. A thread that is started later could not read the file. */
  constructor(program: string, mostMs = MOST_MS) {
    this.#mostMs = mostMs
    this.#program = new URL(`data:text/javascript;base64,${Buffer.from(program).toString('base64')}`)
  }

  async prepare(call: CallToPrepare, holder: Holder): Promise<PreparedCall> {
    if (call.bytes.length <= TINY_BYTES) return prepareCall(call)
    const turns = call.bytes.length <= SMALL_BYTES ? this.#small : this.#large
    return turns.during(holder, async () => this.#inThread(call))
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map(async (thread) => thread.terminate()))
  }

  async #inThread(call: CallToPrepare): Promise<PreparedCall> {
    const thread = this.#idle.pop() ?? this.#start()
    const said = await answerOf(thread, call, this.#mostMs)
    if (said === undefined) {
      await thread.terminate()
      throw new AirlockError('body_too_large', 'The body takes too long to read.')
    }
    this.#idle.push(thread)
    if ('prepared' in said) return { ...said.prepared, body: Buffer.from(said.prepared.body) }
    const { code, message, hint } = said.error
    throw new AirlockError(isErrorCode(code) ? code : 'internal', message, { hint })
  }

  #start(): Worker {
    const thread = new Worker(this.#program, { env: {}, resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MB } })
    thread.unref()
    // An idle thread that dies is found dead by its next call.
    thread.on('error', () => {})
    return thread
  }
}

/** Undefined when the thread died or took too long. */
async function answerOf(thread: Worker, call: CallToPrepare, mostMs: number): Promise<Prepared | undefined> {
  const { promise, resolve } = Promise.withResolvers<Prepared | undefined>()
  const none = () => resolve(undefined)
  const late = setTimeout(none, mostMs)
  thread.once('message', resolve).once('exit', none)
  try {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    thread.postMessage(call)
    return await promise
  } finally {
    clearTimeout(late)
    thread.off('message', resolve).off('exit', none)
  }
}
