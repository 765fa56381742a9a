import { Worker } from 'node:worker_threads'
import { AirlockError, isErrorCode } from '@airlock/contract'
import { MAX_READ_BYTES } from '../answer/answer-stream.ts'
import type { JudgedEvent, StreamedCall } from '../answer/judge-event.ts'
import { readAnswer, type ReadAnswer } from '../answer/read-answer.ts'
import type { CallName } from '../routes/find-route.ts'
import { type CallToPrepare, prepareCall, type PreparedCall } from './prepare-call.ts'
import type { Read, Reading, Readings } from './prepare-main.ts'
import { type Holder, Turns } from './turns.ts'

/** Bodies up to here are read at once: no content of this length takes longer than handing it to a thread and back. */
const TINY_BYTES = 1024
/** Larger bodies have threads of their own, so that a body up to here never waits for one of them. */
const SMALL_BYTES = 128 * 1024
const THREADS_OF_EACH = 2
/** Ten times what the longest text takes. A text that takes longer was made to. */
const MOST_MS = 5_000
const THREAD_MEMORY_MB = 768

/**
 * Reads calls, and what providers answer. Texts that could keep the process busy are read in threads, for it serves every sandbox
 * of the node. A thread that takes too long, or too much memory, is ended with its text.
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
    const prepared = await this.#read({ kind: 'call', ...call, bytes: copyOf(call.bytes) }, holder)
    if (prepared === undefined) throw new AirlockError('body_too_large', 'The body takes too long to read.')
    return { ...prepared, body: bufferOf(prepared.body) }
  }

  /** Of an event that is too long to be read at once. */
  async judge(bytes: Uint8Array, call: StreamedCall, holder: Holder): Promise<JudgedEvent> {
    return given(await this.#read({ kind: 'event', bytes: copyOf(bytes), call }, holder))
  }

  async readAnswer(name: CallName, bytes: Uint8Array, holder: Holder): Promise<ReadAnswer> {
    if (bytes.length <= MAX_READ_BYTES) return readAnswer(name, bytes)
    return given(await this.#read({ kind: 'answer', name, bytes: copyOf(bytes) }, holder))
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map(async (thread) => thread.terminate()))
  }

  /** Undefined for a text that took too long. */
  async #read<K extends keyof Readings>(reading: Reading<K>, holder: Holder): Promise<Readings[K]['said'] | undefined> {
    const turns = reading.bytes.length <= SMALL_BYTES ? this.#small : this.#large
    return turns.during(holder, async () => this.#inThread(reading))
  }

  async #inThread<K extends keyof Readings>(reading: Reading<K>): Promise<Readings[K]['said'] | undefined> {
    const thread = this.#idle.pop() ?? this.#start()
    const read = await answerOf(thread, reading, this.#mostMs)
    if (read === undefined) return void (await thread.terminate())
    this.#idle.push(thread)
    if ('said' in read) return read.said
    const { code, message, hint } = read.error
    throw new AirlockError(isErrorCode(code) ? code : 'internal', message, { hint })
  }

  #start(): Worker {
    const thread = new Worker(this.#program, { env: {}, resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MB } })
    thread.unref()
    // An idle thread that dies is found dead by its next text.
    thread.on('error', () => {})
    return thread
  }
}

/** The provider is to blame for a text that nobody can read in time. */
function given<T>(said: T | undefined): T {
  if (said !== undefined) return said
  throw new AirlockError('upstream_broken', 'The answer of the provider takes too long to read.')
}

/** A message to a thread takes along the whole memory behind a view. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Undefined when the thread died or took too long. */
async function answerOf<K extends keyof Readings>(
  thread: Worker,
  reading: Reading<K>,
  mostMs: number,
): Promise<Read<K> | undefined> {
  const { promise, resolve } = Promise.withResolvers<Read<K> | undefined>()
  const none = () => resolve(undefined)
  const late = setTimeout(none, mostMs)
  thread.once('message', resolve).once('exit', none)
  try {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    thread.postMessage(reading)
    return await promise
  } finally {
    clearTimeout(late)
    thread.off('message', resolve).off('exit', none)
  }
}
