import { createHash } from 'node:crypto'
import { canonical } from '@airlock/audit'
import type { AskAnswer, AskBody, ControlCall } from '@airlock/contract'
import type { SandboxCaller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'

type World = Pick<Context, 'guardian' | 'audit' | 'clock'>

interface Asking {
  /** Aborts when the program does not wait any more. */
  readonly signal: AbortSignal
  /** Throws when its token is not good any more. */
  readonly assertGood: () => Promise<void>
}

/**
 * Asks Guardian, and a person where a rule or no rule says so, whether a program inside may do something. What it does then is
 * its own: the answer and its record are what we give. Preconditions: its token was good, and the server may grant.
 */
export async function askForSandbox(
  world: World,
  { row, call }: { readonly row: StoredSandbox; readonly call: Extract<ControlCall, { ask: 'ask' }> },
  asking: Asking,
): Promise<AskAnswer> {
  const { guardian, clock } = world
  const { requestId, body } = call
  const { action, detail, waitSeconds } = body
  const asked = detail === undefined ? { action } : { action, detail }
  const caller: SandboxCaller = {
    principal: principalOf(row),
    requestId,
    asked: { route: 'sandbox.ask', params: { sandbox: row.id }, query: null, body: asked },
    approvalWait: waitSeconds === 0 ? undefined : { until: clock.now() + waitSeconds * 1000, signal: asking.signal },
    assertGood: asking.assertGood,
  }
  const passed = await guardian.pass(caller, deedOf(caller, body), { kind: 'other', payload: asked })
  return doRecorded(world, passed, async () => ({ value: { allowed: true, rules: passed.decision.rules } }))
}

function principalOf({ id: sandbox, tenant, agent }: StoredSandbox): SandboxCaller['principal'] {
  return { actor: `sandbox:${sandbox}`, tenant, role: 'sandbox', agent, sandbox }
}

/** Evidence names the action, and the detail by its digest: the ask of a person, where there is one, has it whole. */
function deedOf({ principal, requestId }: SandboxCaller, { action, detail = {} }: AskBody): Deed {
  const { tenant, agent, sandbox, actor } = principal
  const sha256 = createHash('sha256').update(canonical(detail)).digest('hex')
  return { point: 'sandbox.ask', tenant, agent, sandbox, actor, payload: { requestId, action, detail: { sha256 } } }
}
