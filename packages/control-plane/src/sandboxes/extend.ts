import type { Sandbox } from '@airlock/contract'
import type { Activity } from './activity.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/core.ts'
import { deedOf, doRecorded } from '../evidence/evidence.ts'
import { toSandbox } from './nouns.ts'
import { usableSandbox } from './owned-sandbox.ts'

/** Lets a sandbox live longer from now on; never shorter, and never past the end of its permit. */
export async function extendSandbox(
  context: Context & { readonly activity: Activity },
  caller: Caller,
  asked: { readonly sandbox: string; readonly ttlMs: number | undefined },
): Promise<Sandbox> {
  const row = await usableSandbox(context, caller, asked.sandbox)
  const ttlMs = asked.ttlMs ?? row.ttlMs
  const wanted = deedOf(caller, row, { point: 'sandbox.extend', payload: { ttlMs } })
  const deed = await context.guardian.pass(caller, wanted)
  return doRecorded(context, deed, async () => {
    const sandbox = toSandbox(await context.activity.extend(row, ttlMs))
    return { value: sandbox, payload: { expiresAt: sandbox.expiresAt } }
  })
}
