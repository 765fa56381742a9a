import {
  type Decision,
  type ErrorCode,
  isAirlockError,
  type NewRecord,
  type Point,
  toAirlockError,
  type UngovernedPoint,
} from '@airlock/contract'
import type { Deed } from '../policies/deed.ts'
import type { Governed } from '../policies/guardian.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'

export type { Deed } from '../policies/deed.ts'
export { type Governed, saying } from '../policies/guardian.ts'

type Payload = Deed['payload']

/** A deed of a caller in a sandbox; `payload` is what it asked for. */
export function deedOf(
  caller: Caller,
  sandbox: { readonly id: string | null; readonly tenant: string; readonly agent: string },
  what: { readonly point: Point; readonly payload: Payload },
): Deed {
  return {
    point: what.point,
    tenant: sandbox.tenant,
    agent: sandbox.agent,
    sandbox: sandbox.id,
    actor: caller.principal.actor,
    payload: { requestId: caller.requestId, ...what.payload },
  }
}

/**
 * Does something that grants or continues (G7): first its record, then the effect, then how it went. When the record
 * cannot be written nothing happens. `effect` answers with what the last record should say besides. What is governed
 * has passed Guardian.
 */
export async function doRecorded<T>(
  context: Pick<Context, 'audit' | 'clock'>,
  deed: Governed | (Deed & { readonly point: UngovernedPoint }),
  effect: () => Promise<{ readonly value: T; readonly payload?: Payload }>,
): Promise<T> {
  const { audit, clock } = context
  await audit.require({ ...deed, status: 'requested' })
  const startedAt = clock.now()
  try {
    const { value, payload } = await effect()
    const said = { ...deed.payload, ...payload }
    audit.note({ ...deed, status: 'done', durationMs: clock.now() - startedAt, payload: said })
    return value
  } catch (error) {
    audit.note({ ...deed, status: 'failed', durationMs: clock.now() - startedAt, error: describeError(error) })
    throw error
  }
}

/**
 * Records what a start does, without which nothing that runs could be ended. Where the chain is broken or full it does
 * not wait: the record follows once somebody has seen to that.
 */
export async function requireAtStart(audit: Context['audit'], record: NewRecord): Promise<void> {
  try {
    await audit.require(record)
  } catch (error) {
    if (!isAirlockError(error) || !OF_TENANT.has(error.code)) throw error
    audit.note(record)
  }
}

/** What concerns one tenant must not keep the server from starting. */
const OF_TENANT: ReadonlySet<ErrorCode> = new Set(['evidence_broken', 'evidence_full'])

export function describeError(error: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = toAirlockError(error)
  return { code, message }
}

/** How long a command or step may run: what was asked for, or what a policy leaves of it. */
export function boundTimeout(timeoutMs: number, { conditions }: Decision): number {
  return Math.min(timeoutMs, conditions.maxTimeoutMs ?? timeoutMs)
}
