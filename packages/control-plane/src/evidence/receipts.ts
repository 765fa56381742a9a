import { createHash } from 'node:crypto'
import type { NewRecord } from '@airlock/contract'
import { listOwedCommands, setCommandsRecorded, type StoredCommand } from '../store/commands.ts'
import { listOwedJobs, setJobsRecorded, type StoredJob } from '../store/jobs.ts'
import { listOwedModelCalls, type ModelCallEnd, setModelCallsRecorded } from '../store/model-calls.ts'
import { listOwedSandboxes, setSandboxesRecorded, type StoredSandbox } from '../store/sandboxes.ts'
import { listOwedSessions, setSessionsRecorded, type StoredSession } from '../store/sessions.ts'
import { listOwedSteps, setStepsRecorded, type StoredStep } from '../store/steps.ts'
import type { Queries } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'
import {
  commandEndRecord,
  jobEndRecord,
  lostSandboxRecord,
  sandboxEndRecord,
  sessionEndRecord,
  stepEndRecord,
} from './end-records.ts'

const BATCH = 500
/** More than end between two flushes; fewer than a statement may have parameters. */
const MARKED_AT_ONCE = 10_000

type World = Pick<Context, 'store' | 'audit' | 'log' | 'node'>

/**
 * Which ends are in the evidence. An end is written to its row first and recorded after; a crash in between, or a note
 * that had to make room, would lose the record. So the row says that it is owed until the recorder has acknowledged it
 * and the store has a head of the chain that covers it, and `payOwed` sends it again. The same end has the same id: it
 * is in the chain once, or twice when very much came between.
 */
export class Receipts {
  readonly #world: World
  readonly #sandboxes: Book
  readonly #commands: Book
  readonly #sessions: Book
  readonly #steps: Book
  readonly #jobs: Book
  readonly #modelCalls: Book

  constructor(world: World) {
    this.#world = world
    this.#sandboxes = new Book(world, setSandboxesRecorded)
    this.#commands = new Book(world, setCommandsRecorded)
    this.#sessions = new Book(world, setSessionsRecorded)
    this.#steps = new Book(world, setStepsRecorded)
    this.#jobs = new Book(world, setJobsRecorded)
    this.#modelCalls = new Book(world, setModelCallsRecorded)
  }

  /** Records how a sandbox ended. Never waits: an end reduces. */
  sandboxEnded(sandbox: StoredSandbox, more: Parameters<typeof sandboxEndRecord>[1]): void {
    this.#sandboxes.note(sandbox.id, `sandbox ${sandbox.id}`, sandboxEndRecord(sandbox, more))
  }

  /** Records that a sandbox of another node was written off: the chain of that node is out of reach. */
  sandboxLost(sandbox: StoredSandbox): void {
    this.#sandboxes.note(sandbox.id, `sandbox ${sandbox.id}`, lostSandboxRecord(sandbox))
  }

  commandEnded(command: StoredCommand, why: Parameters<typeof commandEndRecord>[1]): void {
    this.#commands.note(command.id, `command ${command.id}`, commandEndRecord(command, why))
  }

  sessionEnded(session: StoredSession, requestId: string | null): void {
    this.#sessions.note(session.id, `session ${session.id}`, sessionEndRecord(session, requestId))
  }

  stepEnded(step: StoredStep): void {
    this.#steps.note(step.id, `step ${step.session} ${step.id}`, stepEndRecord(step))
  }

  jobEnded(job: StoredJob): void {
    this.#jobs.note(job.id, `job ${job.id}`, jobEndRecord(job))
  }

  modelCallEnded({ id, record }: Pick<ModelCallEnd, 'id' | 'record'>): void {
    this.#modelCalls.note(id, `model call ${id}`, record)
  }

  /**
   * Marks what is recorded. `keepHeads` stores the heads of the chains and says of which tenants it could: so the store
   * never takes for recorded what its head does not cover.
   */
  async flush(keepHeads: () => Promise<ReadonlySet<string>>): Promise<void> {
    const books = [this.#jobs, this.#commands, this.#steps, this.#sessions, this.#sandboxes, this.#modelCalls]
    const marks = books.map((book) => book.kept())
    const covered = await keepHeads()
    for (const mark of marks) await mark(covered)
  }

  /** Records every end that is owed and not on its way: what a crash, or a full queue, kept from being recorded. */
  async payOwed(): Promise<void> {
    await this.#payAll(listOwedSandboxes, (one) => this.sandboxEnded(one, { usage: null, requestId: null }))
    await this.#payAll(listOwedCommands, (one) => this.commandEnded(one, 'found'))
    await this.#payAll(listOwedSessions, (one) => this.sessionEnded(one, null))
    await this.#payAll(listOwedSteps, (one) => this.stepEnded(one))
    await this.#payAll(listOwedJobs, (one) => this.jobEnded(one))
    await this.#payAll(listOwedModelCalls, (one) => this.modelCallEnded(one))
  }

  async #payAll<Row extends { readonly id: string }>(
    list: (db: Queries, of: { node: string; after: string; limit: number }) => Promise<readonly Row[]>,
    pay: (row: Row) => void,
  ): Promise<void> {
    const { store, node } = this.#world
    for (let after = ''; ;) {
      const rows = await store.query((db) => list(db, { node: node.id, after, limit: BATCH }))
      for (const row of rows) pay(row)
      after = rows.at(-1)?.id ?? after
      if (rows.length < BATCH) return
    }
  }
}

/** The ends of one kind of row. */
class Book {
  readonly #world: World
  readonly #write: (db: Queries, ids: readonly string[]) => Promise<void>
  /** Noted, and not marked yet. */
  readonly #open = new Set<string>()
  /** Of these, by tenant, what the recorder has. */
  readonly #kept = new Map<string, string>()

  constructor(world: World, write: (db: Queries, ids: readonly string[]) => Promise<void>) {
    this.#world = world
    this.#write = write
  }

  /** `name` is of this row and no other, of whichever kind. */
  note(id: string, name: string, record: NewRecord): void {
    if (this.#open.has(id)) return
    this.#open.add(id)
    const rid = `rec_${createHash('sha256').update(name).digest('hex').slice(0, 26)}`
    const onSettled = (how: 'kept' | 'lost') => {
      if (how === 'kept') this.#kept.set(id, record.tenant)
      // Owed still, so it is sent again.
      else this.#open.delete(id)
    }
    this.#world.audit.note(record, { rid, onSettled })
  }

  /** What is acknowledged now; the answer marks what of it is covered by then. */
  kept(): (covered: ReadonlySet<string>) => Promise<void> {
    const kept = [...this.#kept].slice(0, MARKED_AT_ONCE)
    return async (covered) => {
      const ids = kept.filter(([, tenant]) => covered.has(tenant)).map(([id]) => id)
      if (ids.length === 0) return
      await this.#world.store.query((db) => this.#write(db, ids))
      for (const id of ids) {
        this.#kept.delete(id)
        this.#open.delete(id)
      }
    }
  }
}
