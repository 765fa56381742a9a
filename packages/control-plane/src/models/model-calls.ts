import {
  AirlockError,
  type CloseModelCall,
  type NewRecord,
  type OpenedModelCall,
  type OpenModelCall,
  type ServedModel,
  toAirlockError,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import type { SandboxCaller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import type { Receipts } from '../evidence/receipts.ts'
import type { Deed, Governed } from '../evidence/evidence.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import { assertUsable } from '../sandboxes/admit.ts'
import { findAgent } from '../store/agents.ts'
import { listLostModelCalls, listModelCallsOf } from '../store/model-calls.ts'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import { OpenCallJudge } from './open-call-judge.ts'
import { closeCall, type ClosedCall, openCall } from './ledger.ts'

/** Longer than the read timeout of any upstream: a call that is open then has no end any more. */
const CALL_LIFE_MS = 25 * 3_600_000
/** The doors report the calls of a sandbox that ended within this time. */
const REPORT_MS = 30_000
/** Lost calls that are closed in one look of the sweep. */
const MAX_LOST = 100

type World = Pick<
  Context,
  | 'models'
  | 'reservations'
  | 'store'
  | 'node'
  | 'clock'
  | 'audit'
  | 'guardian'
  | 'kills'
  | 'readiness'
  | 'budgetDefaults'
  | 'failpoint'
  | 'doorNews'
  | 'log'
>

/** The doors process that was heard last. */
export interface SeenDoors {
  readonly process: string
  /** When it said hello. */
  readonly at: number
  /** Calls that it had then; null when it did not name them. */
  readonly modelCalls: ReadonlySet<string> | null
}

/**
 * Calls of models by sandboxes: decided on, paid for and recorded before their first byte leaves. Every call that was opened
 * becomes exactly one fact of the ledger, whoever dies meanwhile.
 */
export class ModelCalls {
  readonly #world: World
  readonly #receipts: Pick<Receipts, 'modelCallEnded'>
  readonly #judge: OpenCallJudge
  /** The hello whose calls were compared with the rows. */
  #compared: SeenDoors | undefined

  constructor(world: World, receipts: Pick<Receipts, 'modelCallEnded'>) {
    this.#world = world
    this.#receipts = receipts
    this.#judge = new OpenCallJudge(world)
  }

  /** `doors`: the process that will report the end. */
  async open(asked: OpenModelCall, doors: string): Promise<OpenedModelCall> {
    const { readiness, guardian } = this.#world
    readiness.assert('granting')
    const row = await this.#callerRow(asked.sandbox)
    const callId = newId('cal', this.#world.clock.now())
    const caller = callerOf(row, callId)
    const model = await recordRefusal(this.#world, deedOf(row, callId, { asked: asked.model }), async () =>
      this.#named(asked.model, row),
    )
    assertPlausible(asked, model)
    const deed = deedOf(row, callId, describe(asked, model))
    // Nobody waits: the program inside is told which approval it needs.
    const { revision } = this.#judge
    const passed = await guardian.pass(caller, deed, { kind: 'model', model: model.name })
    return this.#openPassed({ asked, model, row, callId, passed, doors, revision })
  }

  /** Idempotent. A call that nobody opened, or whose end is in the ledger, changes nothing. */
  async close(end: CloseModelCall): Promise<void> {
    const { store, clock, failpoint } = this.#world
    const recordOf = (closed: ClosedCall): NewRecord => endRecordOf(closed, end)
    const reported = { usage: end.usage, at: clock.now(), contextOf: this.#contextOf, recordOf }
    const call = await store.transaction(async (db) => closeCall(db, end.callId, reported))
    this.#judge.ended(end.callId)
    if (!call) return
    await failpoint('model.closed')
    this.#receipts.modelCallEnded({ id: call.id, record: recordOf(call) })
  }

  /**
   * One look of the sweep. Calls that nobody will report are charged their ceilings, and calls that the doors never heard of are not
   * charged. `doors`: the process that is up.
   */
  async closeLost(doors: SeenDoors | null): Promise<void> {
    const { store, node, clock } = this.#world
    const now = clock.now()
    if (doors !== null && doors !== this.#compared) await this.#closeUnheard(doors)
    const of = { node: node.id, now, doors: doors?.process ?? null, endedBefore: now - REPORT_MS, limit: MAX_LOST }
    const lost = await store.query((db) => listLostModelCalls(db, of))
    for (const { id } of lost)
      await this.close({
        callId: id,
        usage: 'unreported',
        status: null,
        error: 'door_unavailable',
        firstByteMs: null,
        durationMs: 0,
      })
  }

  /** The doors send nothing before they have the answer to `model.open`: what they do not have was not sent. */
  async #closeUnheard(doors: SeenDoors): Promise<void> {
    const { process, at: openedBefore, modelCalls } = doors
    const { store, node } = this.#world
    if (modelCalls !== null)
      for (const callId of await store.query((db) =>
        listModelCallsOf(db, { node: node.id, doors: process, openedBefore }),
      ))
        if (!modelCalls.has(callId)) await this.close({ callId, ...UNHEARD })
    this.#compared = doors
  }

  readonly #contextOf = (name: string): number => this.#world.models.served([name])[0]?.contextWindow ?? 0

  /** Throws for a model that the server does not have, and for one that the sandbox was not made with. */
  #named(name: string, row: StoredSandbox): ServedModel {
    const model = this.#world.models.get(name)
    if (row.models.includes(model.name)) return model
    throw new AirlockError('model_not_found', `This sandbox was created without the model ${model.name}.`, {
      hint: `Create one that has it: airlock create --model ${model.name}`,
    })
  }

  async #openPassed(of: Opening): Promise<OpenedModelCall> {
    const { asked, model, row, callId, passed } = of
    const { store, audit, clock, node, budgetDefaults, failpoint } = this.#world
    const now = clock.now()
    const { tenant, agent, id: sandbox } = row
    const upstream = model.upstream?.name ?? 'airlock'
    const ceilingMicroDollars = asked.ceilingMicroDollars
    const at = { openedAt: now, expiresAt: now + CALL_LIFE_MS }
    const who = { id: callId, node: node.id, doors: of.doors, tenant, agent, sandbox }
    const price = JSON.stringify(model.price)
    const ceilingTokens = asked.inputTokens + asked.maxOutputTokens
    const call = { ...who, model: model.name, upstream, price, ceilingMicroDollars, ceilingTokens, ...at }
    await recordRefusal(this.#world, passed, async () =>
      store.transaction((db) =>
        openCall(db, call, { defaults: budgetDefaults, sandbox: row.modelLimits, output: asked }),
      ),
    )
    await failpoint('model.row-written')
    this.#judge.opened(callId, passed)
    try {
      // The judge did not see the row of a call that passed before the change.
      if (of.revision !== this.#judge.revision && (await this.#judge.isDenied(call)))
        throw new AirlockError('policy_denied', 'The rules changed meanwhile.')
      await audit.require({ ...passed, status: 'requested', payload: { ...passed.payload, call: callId } })
      await failpoint('model.recorded')
      return { callId, reservation: await this.#reserve(of, now) }
    } catch (error) {
      // The record may be in the evidence all the same, so it has an end.
      await this.close({ callId, ...UNHEARD, error: toAirlockError(error).code })
      throw error
    }
  }

  async #reserve({ asked, model, row, callId }: Opening, now: number): Promise<string | null> {
    if (model.upstream === null) return null
    const { tenant, agent, id: sandbox, template } = row
    const account = `${tenant}/${agent}`
    const what = {
      callId,
      node: this.#world.node.id,
      tenant,
      agent,
      sandbox,
      account,
      upstream: model.upstream.name,
      route: asked.route,
      model: model.upstream.model,
      ceiling: asked.ceilingMicroDollars,
      maxOutputTokens: asked.maxOutputTokens,
      identity: {
        run_id: sandbox,
        attempt: 0,
        graph_id: template,
        user_id: account,
        existing_trace_id: null,
        session_id: null,
        trace_user_id: null,
      },
    }
    return this.#world.reservations.issue(what, now)
  }

  /** Who came by the socket of a sandbox: only one that lives, of an agent that may act. */
  async #callerRow(sandbox: string): Promise<StoredSandbox> {
    const { store, kills } = this.#world
    const row = await store.query((db) => findSandbox(db, sandbox))
    if (row?.state !== 'active') throw new AirlockError('sandbox_ended')
    kills.assertAlive({ tenant: row.tenant, agent: row.agent, sandbox: row.id })
    const agent = await store.query((db) => findAgent(db, row))
    if (!agent) throw new AirlockError('agent_not_found')
    assertUsable(agent)
    if (agent.generation !== row.generation) throw new AirlockError('stale_generation')
    return row
  }
}

/** A call that never left. */
const UNHEARD = { usage: 'unsent', status: null, error: 'not_ready', firstByteMs: null, durationMs: 0 } as const

/** The last record of a call. */
function endRecordOf(call: ClosedCall, end: CloseModelCall): NewRecord {
  const { tenant, agent, sandbox, model, upstream, id } = call
  const { status, error, firstByteMs, durationMs } = end
  const { usage } = call
  const payload = {
    call: id,
    model,
    upstream,
    usage: inRecord(usage),
    ...(usage === end.usage ? {} : { implausible: inRecord(end.usage) }),
    microDollars: call.microDollars,
    httpStatus: status,
    firstByteMs,
  }
  const record = { tenant, agent, sandbox, actor: `sandbox:${sandbox}`, point: 'model.call' as const, durationMs }
  if (error === null) return { ...record, status: 'done', payload }
  return { ...record, status: usage === 'unreported' ? 'unknown' : 'failed', payload: { ...payload, error } }
}

interface Opening {
  readonly asked: OpenModelCall
  readonly model: ServedModel
  readonly row: StoredSandbox
  readonly callId: string
  readonly passed: Governed
  readonly doors: string
  /** Of the rules, when it passed. */
  readonly revision: number
}

/** A program inside, which no method of a subject takes: all it can do is ask Guardian. */
function callerOf({ id, tenant, agent }: StoredSandbox, requestId: string): SandboxCaller {
  return { principal: { actor: `sandbox:${id}`, tenant, role: 'sandbox', agent, sandbox: id }, requestId }
}

function deedOf({ id, tenant, agent }: StoredSandbox, requestId: string, payload: Deed['payload']): Deed {
  const actor = `sandbox:${id}`
  return { point: 'model.call', tenant, agent, sandbox: id, actor, payload: { requestId, ...payload } }
}

/** In words that redaction does not take for secrets. */
function inRecord(usage: CloseModelCall['usage']) {
  if (typeof usage === 'string') return usage
  const { inputTokens: input, outputTokens: output, cacheReadTokens: cacheRead, cacheWriteTokens: cacheWrite } = usage
  return { input, output, cacheRead, cacheWrite }
}

/** Evidence has the size of what was asked, never its words. */
function describe(asked: OpenModelCall, model: ServedModel) {
  const { route, stream, inputTokens: input, maxOutputTokens: output, ceilingMicroDollars: microDollars } = asked
  const bounds = { ceiling: { input, output, microDollars } }
  return {
    model: model.name,
    asked: asked.model,
    upstream: model.upstream?.name ?? 'airlock',
    route,
    stream,
    ...bounds,
  }
}

/** The doors count; whoever takes them over must not get output that nobody set money aside for. */
function assertPlausible({ maxOutputTokens, ceilingMicroDollars }: OpenModelCall, { price }: ServedModel): void {
  if (ceilingMicroDollars * 1_000_000 < maxOutputTokens * price.output)
    throw new AirlockError('invalid_request', 'The ceiling of the call is below the price of its output.')
}
