import { type CommandEnd, endCommand, findCommand, type StoredCommand } from '../store/commands.ts'
import type { Book } from './command-watch.ts'
import type { Context } from '../app/context.ts'
import { toCommandEnd } from '../sandboxes/nouns.ts'
import type { Receipts } from '../evidence/receipts.ts'

/** Where commands end: their rows, and their last records. */
export function commandBook(context: Context, receipts: Receipts): Book<StoredCommand, CommandEnd> {
  const { store, clock, failpoint } = context
  return {
    read: async (row) => store.query((db) => findCommand(db, { sandbox: row.sandbox, command: row.id })),
    isRunning: (row) => row.state === 'running',
    endOf: async (row, node) => (node ? toCommandEnd(node) : lostEnd(row, clock.now())),
    write: async (row, end) => {
      if (!(await store.quickly((db) => endCommand(db, row.id, end)))) return undefined
      await failpoint('command.result-written')
      return { ...row, ...end }
    },
    record: (row, why) => receipts.commandEnded(row, why),
  }
}

function lostEnd(row: StoredCommand, endedAt: number): CommandEnd {
  const { exitCode, signal, timedOut, cause, truncated, outputBytes, fullOutput, startedAt } = row
  return { state: 'lost', exitCode, signal, timedOut, cause, truncated, outputBytes, fullOutput, startedAt, endedAt }
}
