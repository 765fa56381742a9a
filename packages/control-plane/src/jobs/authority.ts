import { AirlockError } from '@airlock/contract'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { findApiKey, type StoredApiKey } from '../store/api-keys.ts'
import type { StoredJob } from '../store/jobs.ts'

const KEY = /^key:(.+)$/

/** A job outlives its call, so only an API key, which can be looked up later, may submit one. */
export function assertKeyed({ principal }: Caller): void {
  if (KEY.test(principal.actor)) return
  throw new AirlockError('forbidden', 'A token of an identity provider may not submit jobs.', {
    hint: 'Use an API key: a job checks it again when it starts, and a token cannot be checked then.',
  })
}

/** The caller as whom a job starts: its key, if that is still good. Fails closed. */
export async function callerOf({ store, clock }: Pick<Context, 'store' | 'clock'>, job: StoredJob): Promise<Caller> {
  const id = KEY.exec(job.actor)?.[1] ?? ''
  const key = await store.query((db) => findApiKey(db, id))
  if (!key || key.tenant !== job.tenant || !isGood(key, clock.now()))
    throw new AirlockError('key_ended', 'The key that submitted the job is revoked or has expired.', {
      hint: 'Submit it again with another key.',
    })
  const { tenant, role, agents, platform } = key
  return { principal: { actor: job.actor, tenant, role, agents, platform }, requestId: job.id }
}

function isGood({ revokedAt, expiresAt }: StoredApiKey, now: number): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now)
}

/** Whoever submitted it, as it was then: for what has begun already. */
export function submitterOf(job: StoredJob): Caller {
  if (!job.spec) throw new AirlockError('internal', 'A job that runs has lost who submitted it.')
  return { principal: job.spec.principal, requestId: job.id }
}
