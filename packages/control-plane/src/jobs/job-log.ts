import type { CommandEvent, JobEvent } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import { textOf } from '../commands/command-events.ts'
import { findJob, insertLog, type JobLease, changeRunningJob, type LogChunk, readLog } from '../store/jobs.ts'
import type { JobFeed } from './job-feed.ts'
import { isOver, toJob } from './job-nouns.ts'

const FLUSH_BYTES = 64 * 1024
const FLUSH_MS = 100
const CHUNKS = 32

type Output = Extract<CommandEvent, { event: 'output' }>

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
    const base64 = event.base64 ?? Buffer.from(event.text ?? '').toString('base64')
    const bytes = Buffer.byteLength(base64, 'base64')
    const last = this.#chunks.at(-1)
    if (last?.stream === event.stream && this.#waiting < FLUSH_BYTES) {
      const joined = Buffer.concat([Buffer.from(last.base64, 'base64'), Buffer.from(base64, 'base64')])
      this.#chunks[this.#chunks.length - 1] = { ...last, base64: joined.toString('base64') }
    } else {
      this.#chunks.push({ start: this.#end, attempt: this.#log.lease.tries, stream: event.stream, base64 })
    }
    this.#waiting += bytes
    this.#end += bytes
    const isDue = this.#waiting >= FLUSH_BYTES || performance.now() - this.#flushedAt >= FLUSH_MS
    return isDue ? this.flush() : true
  }

  async flush(): Promise<boolean> {
    this.#flushedAt = performance.now()
    if (this.#chunks.length === 0) return true
    const { context, feed, lease } = this.#log
    const chunks = this.#chunks
    const isOurs = await context.store.transaction(async (db) => {
      if (!(await changeRunningJob(db, lease, { logBytes: this.#end }))) return false
      await insertLog(db, lease.id, chunks)
      return true
    })
    this.#chunks = []
    this.#waiting = 0
    feed.tell(lease.id)
    return isOurs
  }
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
      for await (const event of logEvents(of, { from, until: row.logBytes })) {
        from = event.offset
        yield event
      }
      if (isOver(row)) return yield { event: 'ended', job: toJob(row) }
      if (!asked.follow) return
      await changed
    } finally {
      leave()
    }
  }
}

async function* logEvents(
  of: { readonly context: Pick<Context, 'store'>; readonly id: string },
  part: { readonly from: number; readonly until: number },
): AsyncGenerator<Extract<JobEvent, { event: 'output' }>> {
  let { from } = part
  while (from < part.until) {
    const asked = { job: of.id, from, limit: CHUNKS }
    const chunks = await of.context.store.query((db) => readLog(db, asked))
    const before = from
    for (const { start, stream, attempt, base64 } of chunks) {
      const bytes = Buffer.from(base64, 'base64').subarray(Math.max(0, from - start))
      if (bytes.length === 0) continue
      from = Math.max(from, start) + bytes.length
      yield { event: 'output', stream, attempt, offset: from, ...textOf(bytes) }
    }
    // A job that was removed meanwhile has no more to say.
    if (from === before) return
  }
}
