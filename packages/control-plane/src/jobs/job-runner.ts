import { AirlockError, BOUNDS, type ErrorCode } from '@airlock/contract'
import { sleep } from '@airlock/std'
import type { Context } from '../app/context.ts'
import { describeError } from '../evidence/evidence.ts'
import { blockQueue, leaseEnd } from '../store/job-queues.ts'
import {
  deleteOldJobs,
  listAbandonedJobs,
  listOverdueJobs,
  listRunningJobs,
  renewLeases,
  type StoredJob,
} from '../store/jobs.ts'
import { claimJob, LEASE_MS } from './claim.ts'
import { AGAIN_MS, type Outcome } from './job-ends.ts'
import { type BreakOff, JobTry, type TryParts } from './job-try.ts'

/** Tries of this node that are on their way to their command. */
const STARTS_AT_ONCE = 4
const BATCH = 100
const RENEW_EVERY_MS = 3_000
const STOP_MS = 5_000

interface Running {
  readonly tries: number
  readonly broken: AbortController
  readonly over: Promise<void>
}

/**
 * Runs the jobs of this node: takes them from the queue while there is room, keeps their leases, and goes on with those that an
 * earlier life of the process left. Everything that it needs to know is in the store.
 */
export class JobRunner {
  readonly #context: Context
  readonly #parts: TryParts
  readonly #running = new Map<string, Running>()
  #starting = 0
  #pausedUntil = 0
  #renewedAt = -Infinity
  #isStopped = false
  #claims: Promise<void> | undefined
  #isPoked = false

  constructor(context: Context, parts: TryParts) {
    this.#context = context
    this.#parts = parts
  }

  /** One round of the sweep. */
  async look(): Promise<void> {
    if (this.#isStopped) return
    await this.#renew()
    await this.#goOn()
    await this.#endOverdue()
    if (this.#context.store.isShared) await this.#judgeAbandoned()
    this.poke()
  }

  /** Something may be there to take. Never waits. */
  poke(): void {
    this.#isPoked = true
    if (this.#isStopped || this.#claims) return
    this.#claims = this.#claimAll()
      .catch((error: unknown) => this.#context.log.warn('could not claim jobs', { error }))
      .finally(() => (this.#claims = undefined))
  }

  /** Breaks off a try of this process; one of another node sees it in its row. */
  cancel(job: string): void {
    this.#break(job, 'canceled')
  }

  /** Leaves what runs to the next start. What does not let go in time, such as the build of an image, is not waited for. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const [job] of this.#running) this.#break(job, 'stopping')
    const waited = new AbortController()
    // Aborted as soon as all have let go.
    const patience = sleep(STOP_MS, waited.signal).catch(() => undefined)
    await Promise.race([this.settled(), patience])
    waited.abort()
  }

  /** Every claim and every try that is under way is over. */
  async settled(): Promise<void> {
    await this.#claims
    await Promise.all([...this.#running.values()].map(async ({ over }) => over))
  }

  /** Removes jobs that ended long ago. */
  async prune(): Promise<void> {
    const { store, clock } = this.#context
    const endedBefore = clock.now() - BOUNDS.jobKeptMs
    await store.transaction(async (db) => deleteOldJobs(db, { endedBefore, limit: BATCH }))
  }

  async #claimAll(): Promise<void> {
    while (this.#isPoked) {
      this.#isPoked = false
      while (this.#hasRoom()) {
        const job = await claimJob(this.#context)
        if (!job) break
        await this.#context.failpoint('job.claimed')
        this.#run(job)
      }
    }
  }

  #hasRoom(): boolean {
    const { readiness, capacity, clock } = this.#context
    if (this.#isStopped || !readiness.isNodeHeld || clock.now() < this.#pausedUntil) return false
    return this.#running.size < capacity && this.#starting < STARTS_AT_ONCE
  }

  #run(job: StoredJob): void {
    const broken = new AbortController()
    const isStart = job.command === null
    let hasBegun = !isStart
    const begun = () => {
      if (hasBegun) return
      hasBegun = true
      this.#starting--
      this.poke()
    }
    if (isStart) this.#starting++
    const attempt = new JobTry(this.#context, this.#parts, { job, broken, onBegun: begun })
    const over = attempt
      .run()
      .then(async (result) => (result.kind === 'waits' ? this.#hold(job, result.why) : undefined))
      .catch((error: unknown) => this.#context.log.warn('a queue of jobs could not be held', { error }))
      .finally(() => {
        begun()
        this.#running.delete(job.id)
        this.poke()
      })
    this.#running.set(job.id, { tries: job.tries, broken, over })
  }

  /** A refusal holds back those behind it too: of the agent for its budget, of the node for all else. */
  async #hold({ tenant, agent }: StoredJob, why: ErrorCode): Promise<void> {
    const { store, clock } = this.#context
    const until = clock.now() + AGAIN_MS
    if (why !== 'budget_exhausted') this.#pausedUntil = until
    else await store.transaction(async (db) => blockQueue(db, { tenant, agent }, until))
  }

  /** Goes on with what is ours by its row and not under way here. */
  async #goOn(): Promise<void> {
    const { store, node, readiness } = this.#context
    if (!readiness.isNodeHeld) return
    const before = new Set(this.#running.keys())
    for (const job of await store.query((db) => listRunningJobs(db, node.id)))
      if (!before.has(job.id) && !this.#running.has(job.id) && !this.#claims) this.#run(job)
  }

  /** The heartbeat: tries that are not ours any more end, and so do those that were canceled elsewhere. */
  async #renew(): Promise<void> {
    const { store, clock, node } = this.#context
    if (this.#running.size === 0 || performance.now() - this.#renewedAt < RENEW_EVERY_MS) return
    const asked = [...this.#running.entries()]
    const leaseUntil = leaseEnd(store.now(clock), LEASE_MS)
    const rows = await store.transaction(async (db) => renewLeases(db, { node: node.id, leaseUntil }))
    this.#renewedAt = performance.now()
    const ours = new Map(rows.map((row) => [row.id, row]))
    for (const [job, { tries }] of asked) {
      const row = ours.get(job)
      if (!this.#running.has(job)) continue
      if (row?.tries !== tries) this.#break(job, 'taken')
      else if (row.cancelAt !== null) this.#break(job, 'canceled')
    }
  }

  async #endOverdue(): Promise<void> {
    const { store, clock } = this.#context
    const { ends } = this.#parts
    const overdue = await store.query((db) => listOverdueJobs(db, { now: clock.now(), limit: BATCH }))
    const outcome = failedWith('queue_timeout')
    for (const job of overdue) {
      const isOver = await store.transaction(async (db) => ends.endQueued(db, job, outcome))
      if (isOver) await ends.announce(job.id)
    }
  }

  /** What runs on a node that is silent has no result; its sandbox ends there by itself, at its permit at the latest. */
  async #judgeAbandoned(): Promise<void> {
    const { store, node, clock } = this.#context
    const asked = { node: node.id, now: store.now(clock), limit: BATCH }
    for (const job of await store.query((db) => listAbandonedJobs(db, asked)))
      await this.#parts.ends.settle(job, { ...failedWith('node_lost'), mayRetry: true })
  }

  #break(job: string, why: BreakOff): void {
    this.#running.get(job)?.broken.abort(why)
  }
}

function failedWith(code: ErrorCode): Outcome {
  return { state: 'failed', error: describeError(new AirlockError(code)), mayRetry: false }
}
