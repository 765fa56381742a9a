import { BOUNDS } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { Caller } from '../app/caller.ts'
import type { CommandRef } from '../commands/command-ref.ts'
import type { Commands } from '../commands/commands.ts'
import type { StoredCommand } from '../store/commands.ts'

/** How long a run may go on before it is asked to end. What is left of its timeout is for its last words. */
export function softStopMs(timeoutMs: number): number {
  return timeoutMs - Math.min(BOUNDS.runGraceMs, timeoutMs / 10)
}

/** Sends SIGTERM to the command shortly before its timeout, unless it is disposed of first. */
export function armSoftStop(of: {
  readonly commands: Pick<Commands, 'signal'>
  readonly caller: Caller
  readonly ref: CommandRef
  readonly row: StoredCommand
  readonly timeoutMs: number
  readonly now: number
  readonly log: Log
}): Disposable {
  const { commands, caller, ref, row, log } = of
  const dueMs = Math.max(0, row.startedAt + softStopMs(of.timeoutMs) - of.now)
  const stop = () =>
    void commands
      .signal(caller, ref, 'SIGTERM')
      // The timeout of the command ends it all the same.
      .catch((error: unknown) => log.info('could not ask a run to end', { command: ref.command, error }))
  const timer = setTimeout(stop, dueMs)
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}
