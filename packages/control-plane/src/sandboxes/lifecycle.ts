import { AirlockError, type SandboxState } from '@airlock/contract'
import { type SandboxChanges, type StoredSandbox, updateState } from '../store/sandboxes.ts'
import type { Queries } from '../store/engine/store.ts'

/** Every legal move of a sandbox. All ends go through `stopping`, so that one that was cut short is found again. */
export const MOVES = {
  creating: ['active', 'stopping'],
  active: ['paused', 'stopping'],
  paused: ['active', 'stopping'],
  stopping: ['stopped', 'error'],
  stopped: [],
  error: [],
} as const satisfies Record<SandboxState, readonly SandboxState[]>

export function assertMove(from: SandboxState, to: SandboxState): void {
  const legal: readonly SandboxState[] = MOVES[from]
  if (!legal.includes(to)) throw new AirlockError('internal', `A sandbox cannot go from ${from} to ${to}.`)
}

export function isEnded(state: SandboxState): boolean {
  return MOVES[state].length === 0
}

/** The only way a stored sandbox changes its state. Throws when it is no longer in the state that the caller saw. */
export async function moveSandbox(
  db: Queries,
  sandbox: StoredSandbox,
  move: { readonly to: SandboxState; readonly changes: SandboxChanges },
): Promise<StoredSandbox> {
  assertMove(sandbox.state, move.to)
  const moved = await updateState(db, { id: sandbox.id, from: sandbox.state, to: move.to }, move.changes)
  if (!moved) throw new AirlockError('internal', `The sandbox is no longer ${sandbox.state}, so not ${move.to}.`)
  return moved
}
