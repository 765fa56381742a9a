import { type ErrorCode, isAirlockError } from '@airlock/contract'

/** After such an error of a node, a call may have acted: it must be taken for one that did, until the node says otherwise. */
export function isUncertain(error: unknown): boolean {
  if (!isAirlockError(error) || !UNCERTAIN.has(error.code)) return false
  const { cause } = error
  // Nobody listened, so nobody heard the call.
  return !(cause instanceof Error && 'code' in cause && (cause.code === 'ECONNREFUSED' || cause.code === 'ENOENT'))
}

const UNCERTAIN: ReadonlySet<ErrorCode> = new Set(['data_plane_unavailable', 'guest_lost', 'timeout'])
