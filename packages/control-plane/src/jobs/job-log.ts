import type { CommandEvent, JobEvent } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import { type EventOutput, textOf } from '../commands/command-events.ts'
import { findJob, insertLog, type JobLease, changeRunningJob, type LogChunk, readLog } from '../store/jobs.ts'
import type { JobFeed } from './job-feed.ts'
import { isOver, toJob } from './job-nouns.ts'

const FLUSH_BYTES = 64 * 1024
const FLUSH_MS = 100
const CHUNKS = 32

type Output = Extract<CommandEvent, { event: 'output' }> | EventOutput

interface Log {
  readonly context: Pick<Context, 'store'>
  readonly feed: JobFeed
  readonly lease: JobLease
}

/** Writes what the command of a try says into the store, a few times a second; the bytes of a crash are read again. */
export class JobLogWriter {
  readonly #log: Log
  #chunks: LogChunk[] = []
  #waiting = 0
  #end: number
  #flushedAt = 0
  /** Flushes run one after another: the log has no gaps. */
  #flushing: Promise<boolean> = Promise.resolve(true)
  #timer: NodeJS.Timeout | undefined

  /** `end`: how long the log is already. */
  constructor(log: Log, end: number) {
    this.#log = log
    this.#end = end
  }

  /** Bytes of the log of all tries. */
  get end(): number {
    return this.#end
  }

  /** False when the try is not this node's any more. */
  async push(event: Output): Promise<boolean> {
    const { stream, base64 } = chunkOf(event)
    const bytes = Buffer.byteLength(base64, 'base64')
    const last = this.#chunks.at(-1)
    if (last?.stream === stream && this.#waiting < FLUSH_BYTES) {
      const joined = Buffer.concat([Buffer.from(last.base64, 'base64'), Buffer.from(base64, 'base64')])
      this.#chunks[this.#chunks.length - 1] = { ...last, base64: joined.toString('base64') }
    } else {
      this.#chunks.push({ start: this.#end, attempt: this.#log.lease.tries, stream, base64 })
    }
    this.#waiting += bytes
    this.#end += bytes
    const isDue = this.#waiting >= FLUSH_BYTES || performance.now() - this.#flushedAt >= FLUSH_MS
    if (isDue) return this.flush()
    // What was said last before a silence is written too. A failure is told by the next flush.
    this.#timer ??= setTimeout(() => void this.flush().catch(() => undefined), FLUSH_MS)
    return true
  }

  async flush(): Promise<boolean> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const write = async () => this.#write()
    this.#flushing = this.#flushing.then(write, write)
    return this.#flushing
  }

  /** What could not be written waits for the next flush. */
  async #write(): Promise<boolean> {
    this.#flushedAt = performance.now()
    if (this.#chunks.length === 0) return true
    const { context, feed, lease } = this.#log
    const chunks = this.#chunks
    const logBytes = this.#end
    this.#chunks = []
    this.#waiting = 0
    try {
      const isOurs = await context.store.transaction(async (db) => {
        if (!(await changeRunningJob(db, lease, { logBytes }))) return false
        await insertLog(db, lease.id, chunks)
        return true
      })
      feed.tell(lease.id)
      return isOurs
    } catch (error) {
      this.#chunks = [...chunks, ...this.#chunks]
      throw error
    }
  }
}

function chunkOf(event: Output): Pick<LogChunk, 'stream' | 'base64'> {
  if (event.event === 'event_output') return { stream: 'events', base64: event.bytes.toString('base64') }
  return { stream: event.stream, base64: event.base64 ?? Buffer.from(event.text ?? '').toString('base64') }
}

/** What a job said from `from` on; with `follow` until it has ended. Nothing comes twice or is missed. */
export async function* jobEvents(
  of: { readonly context: Pick<Context, 'store'>; readonly feed: JobFeed; readonly id: string },
  asked: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<JobEvent> {
  let { from } = asked
  while (!asked.signal.aborted) {
    const { changed, leave } = of.feed.next(of.id, asked.signal)
    try {
      const row = await of.context.store.query((db) => findJob(db, of.id))
      if (!row) return
      for await (const piece of logPieces(of, { from, until: row.logBytes })) {
        from = piece.offset
        yield* outputOf(piece)
      }
      if (isOver(row)) return yield { event: 'ended', job: toJob(row) }
      if (!asked.follow) return
      await changed
    } finally {
      leave()
    }
  }
}

function* outputOf({ stream, attempt, offset, bytes }: LogPiece): Generator<JobEvent> {
  if (stream !== 'events') yield { event: 'output', stream, attempt, offset, ...textOf(bytes) }
}

export interface LogPiece extends Pick<LogChunk, 'stream' | 'attempt'> {
  /** Of its end, in the log of all tries. */
  readonly offset: number
  readonly bytes: Buffer
}

/** The log between two bytes, in its order. */
export async function* logPieces(
  of: { readonly context: Pick<Context, 'store'>; readonly id: string },
  part: { readonly from: number; readonly until: number },
): AsyncGenerator<LogPiece> {
  let { from } = part
  while (from < part.until) {
    const asked = { job: of.id, from, limit: CHUNKS }
    const chunks = await of.context.store.query((db) => readLog(db, asked))
    const before = from
    for (const { start, stream, attempt, base64 } of chunks) {
      const bytes = Buffer.from(base64, 'base64').subarray(Math.max(0, from - start))
      if (bytes.length === 0) continue
      from = Math.max(from, start) + bytes.length
      yield { stream, attempt, offset: from, bytes }
    }
    // A job that was removed meanwhile has no more to say.
    if (from === before) return
  }
}
