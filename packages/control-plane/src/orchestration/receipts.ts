import { listOwedCommands, setCommandsRecorded, type StoredCommand } from '../store/commands.ts'
import { listOwedSandboxes, setSandboxesRecorded, type StoredSandbox } from '../store/sandboxes.ts'
import { listOwedSessions, setSessionsRecorded, type StoredSession } from '../store/sessions.ts'
import { listOwedSteps, setStepsRecorded, type StoredStep } from '../store/steps.ts'
import type { Context } from './context.ts'
import { commandEndRecord, sandboxEndRecord, sessionEndRecord, stepEndRecord } from './end-records.ts'

const BATCH = 500

/**
 * Which ends are in the evidence. An end is written to its row first and recorded after; a crash in between would lose
 * the record, so the row says that it is owed until it is paid, and `payOwed` pays at the next start. A record may then
 * be there twice, never not at all.
 */
export class Receipts {
  readonly #context: Pick<Context, 'store' | 'audit' | 'log' | 'node'>
  readonly #sandboxes = new Set<string>()
  readonly #commands = new Set<string>()
  readonly #sessions = new Set<string>()
  readonly #steps = new Set<string>()

  constructor(context: Pick<Context, 'store' | 'audit' | 'log' | 'node'>) {
    this.#context = context
  }

  /** Records how a sandbox ended. Never waits: an end reduces. */
  sandboxEnded(sandbox: StoredSandbox, more: Parameters<typeof sandboxEndRecord>[1]): void {
    this.#context.audit.note(sandboxEndRecord(sandbox, more))
    this.#sandboxes.add(sandbox.id)
  }

  commandEnded(command: StoredCommand, why: Parameters<typeof commandEndRecord>[1]): void {
    this.#context.audit.note(commandEndRecord(command, why))
    this.#commands.add(command.id)
  }

  sessionEnded(session: StoredSession, requestId: string | null): void {
    this.#context.audit.note(sessionEndRecord(session, requestId))
    this.#sessions.add(session.id)
  }

  stepEnded(step: StoredStep): void {
    this.#context.audit.note(stepEndRecord(step))
    this.#steps.add(step.id)
  }

  /** Marks what was recorded; called by the sweep, so that an end does not cost a write of its own. */
  async flush(): Promise<void> {
    await this.#mark(this.#commands, setCommandsRecorded)
    await this.#mark(this.#steps, setStepsRecorded)
    await this.#mark(this.#sessions, setSessionsRecorded)
    await this.#mark(this.#sandboxes, setSandboxesRecorded)
  }

  /** Records every end that a crash kept from being recorded. */
  async payOwed(): Promise<void> {
    const { store } = this.#context
    const of = { node: this.#context.node.id, limit: BATCH }
    for (;;) {
      const sandboxes = await store.query((db) => listOwedSandboxes(db, of))
      const commands = await store.query((db) => listOwedCommands(db, of))
      const sessions = await store.query((db) => listOwedSessions(db, of))
      const steps = await store.query((db) => listOwedSteps(db, of))
      for (const sandbox of sandboxes) this.sandboxEnded(sandbox, { usage: null, requestId: null })
      for (const command of commands) this.commandEnded(command, 'found')
      for (const session of sessions) this.sessionEnded(session, null)
      for (const step of steps) this.stepEnded(step)
      await this.flush()
      if ([sandboxes, commands, sessions, steps].every(({ length }) => length < BATCH)) return
    }
  }

  async #mark(ids: Set<string>, write: typeof setCommandsRecorded): Promise<void> {
    const batch = [...ids].slice(0, BATCH)
    if (batch.length === 0) return
    await this.#context.store.query((db) => write(db, batch))
    for (const id of batch) ids.delete(id)
  }
}
