import { AirlockError } from '@airlock/contract'
import type { Caller } from '../app/caller.ts'

/**
 * What is decided about agents, keys and evidence of a tenant is not for who is bound to some of its agents, whatever the
 * role: so no agent approves or resumes itself.
 */
export function assertUnbound(caller: Caller): void {
  if (caller.principal.agents !== null)
    throw new AirlockError('forbidden', 'Who is bound to agents may not do that.', {
      hint: 'Use a key that is not bound to agents.',
    })
}
