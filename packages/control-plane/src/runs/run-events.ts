import type { RunEvent } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import type { JobFeed } from '../jobs/job-feed.ts'
import { logPieces } from '../jobs/job-log.ts'
import { isOver } from '../jobs/job-nouns.ts'
import { findJob, type StoredJob } from '../store/jobs.ts'
import { RunOutput } from './run-output.ts'

interface Source {
  readonly context: Pick<Context, 'store'>
  readonly feed: JobFeed
  readonly id: string
  /** With what it used, for the last event. */
  readonly last: (row: StoredJob) => Promise<Extract<RunEvent, { event: 'done' }>['run']>
}

interface Asked {
  readonly from: number
  readonly follow: boolean
  readonly signal: AbortSignal
}

/**
 * What a run did from `from` on; with `follow` until it is done. The log is read from its beginning each time, so events and ids are
 * the same for every reader and after every crash. The last events have ids beyond the log: the answer or the error, then the end.
 */
export async function* runEvents(of: Source, asked: Asked): AsyncGenerator<RunEvent> {
  const reader = new Reader(of)
  while (!asked.signal.aborted) {
    const { changed, leave } = of.feed.next(of.id, asked.signal)
    try {
      const row = await of.context.store.query((db) => findJob(db, of.id))
      if (!row) return
      yield* reader.readAfter(row, asked.from)
      if (isOver(row) || !asked.follow) return
      await changed
    } finally {
      leave()
    }
  }
}

/** Goes through the log of the latest try, once. */
class Reader {
  readonly #of: Source
  readonly #output = new RunOutput()
  #at: number | undefined
  #phase: StoredJob['state'] | undefined

  constructor(of: Source) {
    this.#of = of
  }

  /** What there is since the last call, but for events that a reader has already. */
  async *readAfter(row: StoredJob, from: number): AsyncGenerator<RunEvent> {
    for await (const event of this.#read(row)) if (offsetOf(event) > from) yield event
  }

  async *#read(row: StoredJob): AsyncGenerator<RunEvent> {
    yield* this.#status(row)
    this.#at ??= row.logStart
    for await (const { stream, bytes, offset } of logPieces(this.#of, { from: this.#at, until: row.logBytes })) {
      this.#at = offset
      if (stream === 'events') yield* this.#output.push(bytes, offset)
    }
    if (!isOver(row)) return
    yield* this.#output.end(row.logBytes)
    yield* await ending(this.#of, row, this.#output.text)
  }

  *#status({ state }: StoredJob): Generator<RunEvent> {
    if ((state === 'queued' || state === 'running') && state !== this.#phase) yield { event: 'status', phase: state }
    this.#phase = state
  }
}

async function ending(of: Source, row: StoredJob, text: string): Promise<readonly RunEvent[]> {
  const run = await of.last(row)
  const offset = row.logBytes + 1
  const outcome: RunEvent = run.error
    ? { event: 'error', offset, code: run.error.code, message: run.error.message }
    : { event: 'assistant_final', offset, content: text }
  return [outcome, { event: 'done', offset: offset + 1, run }]
}

function offsetOf(event: RunEvent): number {
  // Without an offset it is about now, and comes to every reader.
  return 'offset' in event && event.offset !== undefined ? event.offset : Infinity
}
