import {
  AirlockError,
  type Failpoint,
  isAirlockError,
  type NodeCommand,
  type NodeSession,
  type NodeSessionSpec,
  type NodeStepSpec,
} from '@airlock/contract'
import { type GuestRequest, type GuestResults, RICH_BYTES } from '@airlock/contract/guest'
import type { CommandTable } from './command-table.ts'
import type { Op } from './guest-connection.ts'
import type { GuestWire } from './guest-wire.ts'
import type { Starts } from './starts.ts'

export interface GuestSessionsOptions {
  readonly wire: GuestWire
  readonly table: CommandTable
  readonly starts: Starts
  readonly failpoint: Failpoint
}

/** The interpreters of one guest, and the steps that they are given. */
export class GuestSessions {
  readonly #options: GuestSessionsOptions

  constructor(options: GuestSessionsOptions) {
    this.#options = options
  }

  /** Starts an interpreter. Idempotent: an id that is known is answered as it is. */
  async open(session: NodeSessionSpec): Promise<NodeSession> {
    return await this.#ask({ op: 'session.open', session })
  }

  async list(): Promise<readonly NodeSession[]> {
    return (await this.#ask({ op: 'session.list' })).sessions
  }

  async interrupt(session: string): Promise<void> {
    await this.#ask({ op: 'session.interrupt', session })
  }

  async restart(session: string): Promise<NodeSession> {
    return await this.#ask({ op: 'session.restart', session })
  }

  /** Idempotent: one that is not there is closed. */
  async close(session: string): Promise<void> {
    try {
      await this.#ask({ op: 'session.close', session })
    } catch (error) {
      if (!isAirlockError(error) || error.code !== 'session_not_found') throw error
    }
  }

  /** Gives code to a session, where it takes its turn; followed like a command. Idempotent in the same way. */
  async step(session: string, spec: NodeStepSpec): Promise<NodeCommand> {
    return await this.#options.starts.once(spec.id, () => this.#startStep(session, spec))
  }

  /** A guest that is not there is never asked, so nothing is left to find out about the step. */
  async #startStep(session: string, spec: NodeStepSpec): Promise<NodeCommand> {
    const { wire, table, starts, failpoint } = this.#options
    if (!wire.attached) await wire.connectionSoon().catch(throwUnreachable)
    const { id, timeoutMs } = spec
    const maxOutputBytes = spec.maxOutputBytes + RICH_BYTES
    const record = await table.begin({ id, timeoutMs, maxOutputBytes, stdin: 'none', session })
    const step = { ...spec, session, channel: record.channel }
    await starts.ask(record, { op: 'step', step }, async () => failpoint('step.accepted'))
    return record.command
  }

  /** A guest that does not answer is one that cannot be reached now. */
  async #ask<K extends Op>(request: Extract<GuestRequest, { op: K }>): Promise<GuestResults[K]> {
    return await this.#options.wire.ask(request).catch(throwUnreachable)
  }
}

function throwUnreachable(cause: unknown): never {
  if (!isAirlockError(cause) || !['guest_lost', 'timeout'].includes(cause.code)) throw cause
  throw new AirlockError('runtime_unreachable', undefined, { cause })
}
