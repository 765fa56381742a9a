import type { JobState } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import type { Receipts } from '../evidence/receipts.ts'
import type { Queries } from '../store/engine/store.ts'
import { countInQueue } from '../store/job-queues.ts'
import { changeQueuedJob, changeRunningJob, findJob, type JobChanges, type StoredJob } from '../store/jobs.ts'
import type { JobFeed } from './job-feed.ts'

/** A refused start is tried again after this: nothing of it has begun. */
export const AGAIN_MS = 1_000
/** However often a try failed, the next one does not wait longer. */
const RETRY_MAX_MS = 60 * 60_000

/** How a try ended. `mayRetry`: another may follow, if the job has retries left. */
export interface Outcome {
  readonly state: Extract<JobState, 'succeeded' | 'failed' | 'canceled'>
  readonly error: StoredJob['error']
  readonly mayRetry: boolean
  readonly changes?: JobChanges
}

/** Whether another try follows one that came out like this. */
export function isTriedAgain(
  { tries, retries, cancelAt }: Pick<StoredJob, 'tries' | 'retries' | 'cancelAt'>,
  { state, mayRetry }: Outcome,
): boolean {
  return state === 'failed' && mayRetry && tries <= retries && cancelAt === null
}

interface World extends Pick<Context, 'store' | 'node' | 'clock'> {
  readonly feed: JobFeed
  readonly receipts: Pick<Receipts, 'jobEnded'>
}

/** Writes how tries end. The row changes first, by compare and set; its record follows, and is owed until it is kept. */
export class JobEnds {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** Ends the job, or queues its next try. False when the try was not this node's any more. */
  async settle(job: StoredJob, outcome: Outcome): Promise<boolean> {
    return isTriedAgain(job, outcome) ? this.#queueAgain(job, this.#nextTry(job)) : this.#end(job, outcome)
  }

  /** A try of which nothing ran: it does not count, and waits no longer in all than it may. */
  async giveBack(job: StoredJob): Promise<boolean> {
    return this.#queueAgain(job, { tries: job.tries - 1, notBefore: this.#world.clock.now() + AGAIN_MS })
  }

  /** One that waits. False when it does not wait any more. */
  async endQueued(db: Queries, job: StoredJob, outcome: Outcome): Promise<boolean> {
    if (!(await changeQueuedJob(db, job.id, this.#endOf(outcome)))) return false
    await countInQueue(db, job, -1)
    return true
  }

  /** Tells readers and the evidence of an end that is written. */
  async announce(id: string): Promise<void> {
    const { store, feed, receipts } = this.#world
    const row = await store.query((db) => findJob(db, id))
    if (row?.endedAt) receipts.jobEnded(row)
    feed.tell(id)
  }

  async #end(job: StoredJob, outcome: Outcome): Promise<boolean> {
    const { store } = this.#world
    const isOurs = await store.transaction(async (db) => changeRunningJob(db, job, this.#endOf(outcome)))
    if (isOurs) await this.announce(job.id)
    return isOurs
  }

  #nextTry({ tries, retryDelayMs, queueMs }: StoredJob): JobChanges {
    const notBefore = this.#world.clock.now() + Math.min(retryDelayMs * 2 ** (tries - 1), RETRY_MAX_MS)
    return { notBefore, queueEndsAt: notBefore + queueMs }
  }

  async #queueAgain(job: StoredJob, changes: JobChanges): Promise<boolean> {
    const { store, feed } = this.#world
    const fresh = {
      hasResult: false,
      exitCode: null,
      signal: null,
      cause: null,
      error: null,
      truncated: false,
      artifacts: null,
    }
    const back = { ...fresh, state: 'queued', node: null, sandbox: null, command: null, ...changes } as const
    const isOurs = await store.transaction(async (db) => {
      if (!(await changeRunningJob(db, job, back))) return false
      await countInQueue(db, job, 1)
      return true
    })
    feed.tell(job.id)
    return isOurs
  }

  /** What it needed to run is not kept: environment, code and files. */
  #endOf({ state, error, changes }: Outcome): JobChanges {
    const { clock, node } = this.#world
    return { ...changes, state, error, spec: null, endedAt: clock.now(), endNode: node.id }
  }
}
