import { type ErrorCode, isAirlockError } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import { type Deed, describeError } from './evidence.ts'

/** What means no, and not that something broke. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'forbidden',
  'invalid_request',
  'agent_required',
  'agent_not_found',
  'agent_not_approved',
  'agent_suspended',
  'killed',
  'agent_exists',
  'stale_generation',
  'invalid_transition',
  'grant_not_found',
  'grant_refused',
  'grant_exists',
  'too_many_grants',
  'key_not_found',
  'key_ended',
  'key_line_too_long',
  'budget_exhausted',
  'capacity_exhausted',
  'host_disk_full',
  'template_not_found',
  'model_not_found',
  'tenant_not_found',
  'tenant_exists',
  'artifact_not_found',
  'job_mismatch',
  'queue_full',
  'too_many_agents',
  'too_many_keys',
  'too_many_requests',
])

/** Does the work; if we say no, that is evidence too. A refusal never waits for its record. */
export async function recordRefusal<T>(
  context: Pick<Context, 'audit'>,
  deed: Deed,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isAirlockError(error) && REFUSALS.has(error.code))
      context.audit.note({ ...deed, status: 'denied', error: describeError(error) })
    throw error
  }
}
