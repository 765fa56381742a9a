import { setImmediate } from 'node:timers/promises'
import { AirlockError, type ErrorCode, isAirlockError, type NodeCommand } from '@airlock/contract'
import type { GuestRequest } from '@airlock/contract/guest'
import { type Log, untilAborted } from '@airlock/std'
import type { CommandRecord } from './command-record.ts'
import type { CommandTable } from './command-table.ts'
import { ANSWER_MS, withinDeadline } from './deadline.ts'
import type { GuestWire } from './guest-wire.ts'
import type { Patience } from './patience.ts'

export interface StartsOptions {
  readonly wire: GuestWire
  readonly table: CommandTable
  readonly patience: Patience
  readonly log: Log
}

type StartRequest = Extract<GuestRequest, { op: 'run' | 'step' }>

/** Has the guest start what is in the table, each once. */
export class Starts {
  readonly #options: StartsOptions
  readonly #underWay = new Map<string, Promise<NodeCommand>>()
  readonly #unanswered = new Map<CommandRecord, Promise<void>>()
  /** Reported as running before the guest answered. */
  readonly #late = new WeakSet<CommandRecord>()

  constructor(options: StartsOptions) {
    this.#options = options
  }

  /** An id that is known is answered as it is; those who ask for the same thing at once get the same answer. */
  async once(id: string, start: () => Promise<NodeCommand>): Promise<NodeCommand> {
    const starting = this.#underWay.get(id)
    if (starting) return await starting
    const known = this.#options.table.find(id)
    if (known) return known.command
    const started = start().finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, started)
    return await started
  }

  /**
   * Resolves when the guest has started the record and `begun` is done. A late guest is not waited for: the record then counts as
   * running, and the guest goes on being asked. Rejects when the record will not run, or when the link to the guest is closed.
   */
  async ask(record: CommandRecord, request: StartRequest, begun: () => Promise<void>): Promise<void> {
    const { patience, log } = this.#options
    await this.#assertAttached(record)
    const answer = this.#start(record, request, begun)
    this.#unanswered.set(record, answer)
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#late.add(record)
      log.warn('a guest is late to start a command', { command: record.id })
      late.resolve()
    }, patience.startMs)
    await Promise.race([answer, late.promise]).finally(() => clearTimeout(timer))
  }

  /** Resolves once the guest has answered the start. Before that it does not know the channel of the record. */
  async answered(record: CommandRecord): Promise<void> {
    const answer = this.#unanswered.get(record)
    if (!answer) return
    // The caller who asked for the start hears why it failed.
    const settled = answer.catch(() => undefined)
    await withinDeadline(async (limit) => (limit ? untilAborted(settled, limit) : settled), { ms: ANSWER_MS })
  }

  /** A guest that is never asked starts nothing. */
  async #assertAttached(record: CommandRecord): Promise<void> {
    const { wire, table } = this.#options
    try {
      if (!wire.attached) await wire.connectionSoon()
    } catch (error) {
      await table.drop(record)
      const isLost = isAirlockError(error) && error.code === 'guest_lost'
      // `guest_lost` is for a guest that was asked: it may have begun.
      throw isLost ? new AirlockError('sandbox_not_active', undefined, { cause: error }) : error
    }
  }

  async #start(record: CommandRecord, request: StartRequest, begun: () => Promise<void>): Promise<void> {
    const { wire, table } = this.#options
    try {
      if (!(await this.#isStarted(record, request))) return
      // Its start was given up: nobody follows it any more.
      if (record.isLost) return void (await wire.ask({ op: 'signal', channel: record.channel, signal: 'SIGKILL' }))
      table.answered(record)
      await begun()
    } finally {
      this.#unanswered.delete(record)
    }
  }

  /** False when the guest refused it after it was reported as running. An earlier refusal is thrown. */
  async #isStarted(record: CommandRecord, request: StartRequest): Promise<boolean> {
    const { table, log } = this.#options
    try {
      await this.#insist(record, request)
      return true
    } catch (error) {
      // It may run all the same.
      if (isAirlockError(error) && LET_GO.has(error.code)) throw error
      if (!this.#late.has(record)) {
        await table.drop(record)
        throw error
      }
      log.warn('a late guest did not start a command', { command: record.id, error })
      await table.lose(record)
      return false
    }
  }

  /** Asks over as many connections as it takes. Asking twice starts once. */
  async #insist(record: CommandRecord, request: StartRequest): Promise<void> {
    for (;;) {
      const connection = await this.#options.wire.connection(undefined)
      // The start was given up. Should the guest run it after all, its hello said so.
      if (record.isLost) throw new AirlockError('guest_lost')
      try {
        return void (await connection.request(request, undefined))
      } catch (error) {
        if (!isAirlockError(error) || error.code !== 'guest_lost') throw error
        // The end of a connection is noticed in a later turn of the event loop.
        await setImmediate()
      }
    }
  }
}

/** The link is closed, or the connection was lost and is not asked over again. */
const LET_GO: ReadonlySet<ErrorCode> = new Set(['guest_lost', 'sandbox_ended', 'data_plane_unavailable'])
