import { isAirlockError, type NodeCommand } from '@airlock/contract'
import type { GuestRequest } from '@airlock/contract/guest'
import type { CommandRecord } from './command-record.ts'
import type { CommandTable } from './command-table.ts'
import type { GuestWire } from './guest-wire.ts'

/** Has the guest start what is in the table, each once. */
export class Starts {
  readonly #wire: GuestWire
  readonly #table: CommandTable
  readonly #underWay = new Map<string, Promise<NodeCommand>>()

  constructor(wire: GuestWire, table: CommandTable) {
    this.#wire = wire
    this.#table = table
  }

  /** An id that is known is answered as it is; those who ask for the same thing at once get the same answer. */
  async once(id: string, start: () => Promise<NodeCommand>): Promise<NodeCommand> {
    const starting = this.#underWay.get(id)
    if (starting) return await starting
    const known = this.#table.find(id)
    if (known) return known.command
    const started = start().finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, started)
    return await started
  }

  async ask(record: CommandRecord, request: Extract<GuestRequest, { op: 'run' | 'step' }>): Promise<void> {
    try {
      await this.#wire.ask(request)
    } catch (error) {
      // Without an answer it may run all the same: the guest's next hello tells.
      if (!isUnanswered(error)) await this.#table.drop(record)
      throw error
    } finally {
      this.#table.started(record)
    }
  }
}

function isUnanswered(error: unknown): boolean {
  return isAirlockError(error) && ['guest_lost', 'timeout', 'sandbox_ended'].includes(error.code)
}
