import type { EndCause, EndReason, StepError } from '@airlock/contract'
import type { StoredSandbox } from '../store/sandboxes.ts'

/**
 * Ends that somebody or some rule ordered. The time to live and the idle time are the caller's own and grow with use; the
 * longest life is a limit that nobody outlives.
 */
const ORDERED: ReadonlySet<EndReason> = new Set<EndReason>([
  'killed',
  'agent_revoked',
  'agent_suspended',
  'agent_deleted',
  'grant_revoked',
  'budget_exhausted',
  'max_lifetime',
  'pids_exhausted',
  'out_of_memory',
  'disk_exhausted',
  'cpu_exhausted',
])

/** What a guest died of, as the error of its sandbox. */
export const LOST_FOR = {
  out_of_memory: {
    code: 'out_of_memory',
    message: 'The sandbox needed more memory than it has, and the kernel ended it.',
  },
  pids_exhausted: {
    code: 'pids_exhausted',
    message: 'The sandbox needed more processes than it may have, and broke down.',
  },
  state_damaged: {
    code: 'state_damaged',
    message: 'Files of the sandbox on its host are damaged.',
  },
} as const

type Ended = Pick<StoredSandbox, 'endReason' | 'error'>

/** Why what still ran in a sandbox ended, now that it is gone. */
export function causeOfEnd({ endReason, error }: Ended): EndCause {
  if (endReason === 'guest_lost' && (error?.code === 'out_of_memory' || error?.code === 'pids_exhausted'))
    return error.code
  return endReason !== null && ORDERED.has(endReason) ? 'killed_by_policy' : 'sandbox_ended'
}

/** What a step says that was cut off by the end of its sandbox. */
export function stepErrorOfEnd({ endReason, error }: Ended): StepError {
  const why = error?.message ?? `It ended by ${endReason ?? 'nobody knows what'}.`
  return { name: 'RuntimeCrashed', message: `The sandbox ended before the step did. ${why}`, traceback: '' }
}

/** Of a sandbox whose row another node ended. */
export const NODE_LOST = {
  code: 'node_lost',
  message: 'The node of the sandbox was not heard of before its time was over.',
}
