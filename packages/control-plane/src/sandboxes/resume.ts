import { AirlockError } from '@airlock/contract'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import { extendSessionsOf } from '../store/sessions.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { deedOf, doRecorded } from '../evidence/evidence.ts'
import { isEnded, moveSandbox } from './lifecycle.ts'

export type ResumeContext = Pick<
  Context,
  'store' | 'dataPlane' | 'audit' | 'clock' | 'turns' | 'guardian' | 'kills' | 'failpoint' | 'log'
>

/**
 * Lets a paused sandbox go on with the time that it had left. One that goes on already is answered as it is. `why`: somebody
 * asked for it, or somebody uses one that was paused for being idle.
 */
export async function resumeSandbox(
  context: ResumeContext,
  caller: Caller,
  asked: { readonly sandbox: StoredSandbox; readonly why: 'request' | 'use' },
): Promise<StoredSandbox> {
  const { kills, guardian, turns, store } = context
  const { id, tenant, agent } = asked.sandbox
  kills.assertAlive({ tenant, agent, sandbox: id })
  const deed = deedOf(caller, asked.sandbox, { point: 'sandbox.resume', payload: { why: asked.why } })
  const passed = await guardian.pass(caller, deed)
  return turns.run(id, async () => {
    const row = await store.query((db) => findSandbox(db, id))
    if (!row || isEnded(row.state)) throw new AirlockError('sandbox_ended')
    // Somebody may have wanted it paused, or dead, meanwhile.
    kills.assertAlive({ tenant, agent, sandbox: id })
    if (row.state === 'active') {
      // A crash may have left it standing still all the same.
      await context.dataPlane.resume(id)
      return row
    }
    if (row.state !== 'paused') throw new AirlockError('sandbox_not_active')
    if (asked.why === 'use' && row.pausedBy !== 'idle') throw new AirlockError('sandbox_paused')
    return doRecorded(context, passed, async () => {
      const value = await resumeInTurn(context, row)
      return {
        value,
        payload: { pausedMs: pausedMsOf(row, value), expiresAt: new Date(value.expiresAt).toISOString() },
      }
    })
  })
}

/** Where the row cannot be written, it is paused again: what the store says is what holds. */
async function resumeInTurn(context: ResumeContext, row: StoredSandbox): Promise<StoredSandbox> {
  const { store, dataPlane, clock, failpoint, log } = context
  await dataPlane.resume(row.id)
  await failpoint('resume.thawed')
  const now = clock.now()
  const leftMs = Math.max(0, row.expiresAt - (row.pausedAt ?? now))
  const expiresAt = Math.min(now + leftMs, row.endsAt)
  const changes = { pausedAt: null, pausedBy: null, lastActiveAt: now, expiresAt }
  try {
    return await store.transaction(async (db) => {
      await extendSessionsOf(db, row.id, now - (row.pausedAt ?? now))
      return moveSandbox(db, row, { to: 'active', changes })
    })
  } catch (error) {
    await dataPlane
      .pause(row.id)
      .catch((cause: unknown) => log.warn('a sandbox goes on though its row says paused', { sandbox: row.id, cause }))
    throw error
  }
}

function pausedMsOf(before: StoredSandbox, after: StoredSandbox): number {
  return Math.max(0, after.lastActiveAt - (before.pausedAt ?? after.lastActiveAt))
}
