import { AirlockError, type CreateSandboxBody, isAirlockError, type Sandbox } from '@airlock/contract'
import { Cleanup, newId } from '@airlock/std'
import { admit, type Admitted, assertCapacity } from '../admission/admit.ts'
import { connectAgent, findAgent } from '../store/agents.ts'
import { findLivingByName, findSandbox, insertSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import type { Queries } from '../store/store.ts'
import type { Activity } from './activity.ts'
import type { Context } from './context.ts'
import type { Caller } from './core.ts'
import { type Deed, deedOf, describeError } from './evidence.ts'
import { moveSandbox } from './lifecycle.ts'
import { toSandbox } from './nouns.ts'
import { assertHere } from './owned-sandbox.ts'
import type { Termination } from './terminate.ts'

/** How often a name may change hands while we look. */
const NAME_TRIES = 3

/**
 * Creation, the model for everything that has effects: check, write the row, record, start, activate, record. Whatever
 * fails, the sandbox is destroyed, its row says why, and the caller hears the first error.
 */
export class Creation {
  readonly #context: Context
  readonly #parts: { readonly termination: Termination; readonly activity: Activity }
  readonly #underWay = new Set<string>()

  constructor(context: Context, parts: { readonly termination: Termination; readonly activity: Activity }) {
    this.#context = context
    this.#parts = parts
  }

  async create(caller: Caller, body: CreateSandboxBody): Promise<Sandbox> {
    const { store, readiness, failpoint, clock, turns } = this.#context
    readiness.assertGranting()
    await store.query((db) => admit(db, caller.principal, body))
    await failpoint('create.admitted')
    const id = newId('sbx', clock.now())
    this.#underWay.add(id)
    try {
      return toSandbox(await turns.run(id, async () => this.#createInTurn(id, caller, body)))
    } finally {
      this.#underWay.delete(id)
    }
  }

  /** The living sandbox of that name once it is active, or a new one. Several callers at once get the same one. */
  async getOrCreate(caller: Caller, body: CreateSandboxBody & { readonly name: string }): Promise<Sandbox> {
    const { store, readiness, turns } = this.#context
    readiness.assertGranting()
    const of = { tenant: caller.principal.tenant, agent: body.agent, name: body.name }
    for (let attempt = 1; ; attempt++) {
      await store.query((db) => admit(db, caller.principal, body))
      const living = await store.query((db) => findLivingByName(db, of))
      if (living) await assertHere(this.#context, living)
      // One that is being made or ended is waited for: its turn comes after that.
      const settled = living && (await turns.run(living.id, () => store.query((db) => findSandbox(db, living.id))))
      if (settled?.state === 'active') {
        await this.#parts.activity.touch(settled)
        return toSandbox(this.#parts.activity.current(settled))
      }
      try {
        return await this.create(caller, body)
      } catch (error) {
        if (attempt >= NAME_TRIES || !isAirlockError(error) || error.code !== 'name_taken') throw error
      }
    }
  }

  /** Whether this process is making that sandbox now. */
  isCreating(id: string): boolean {
    return this.#underWay.has(id)
  }

  get underWay(): number {
    return this.#underWay.size
  }

  async #createInTurn(id: string, caller: Caller, body: CreateSandboxBody): Promise<StoredSandbox> {
    const { audit, failpoint, log, clock } = this.#context
    const startedAt = clock.now()
    const undo = new Cleanup()
    let failure: unknown
    try {
      const row = await this.#insert(id, caller, body)
      const deed = this.#deed(caller, row, body)
      undo.add('sandbox', () => this.#giveUp(row, deed, failure))
      await failpoint('create.row-written')
      await audit.require({ ...deed, status: 'requested' })
      await failpoint('create.recorded')
      const { isolation } = await this.#context.dataPlane.start(this.#permit(row, body))
      await failpoint('create.started')
      const active = await this.#activate(row, isolation)
      await failpoint('create.activated')
      const payload = { ...deed.payload, isolation }
      await audit.require({ ...deed, status: 'done', durationMs: clock.now() - startedAt, payload })
      undo.release()
      return active
    } catch (error) {
      failure = error
      for (const left of await undo.run()) log.error('a failed creation is left to the sweep', { sandbox: id, ...left })
      throw error
    }
  }

  /** Capacity, agent and name are decided in the transaction that takes the place. */
  async #insert(id: string, caller: Caller, body: CreateSandboxBody): Promise<StoredSandbox> {
    const { store, readiness, capacity, node } = this.#context
    try {
      return await store.transaction(async (db) => {
        const admitted = await admit(db, caller.principal, body)
        readiness.assertGranting()
        await assertCapacity(db, node.id, capacity)
        const row = this.#newRow(id, { caller, body, admitted })
        await insertSandbox(db, row)
        return row
      })
    } catch (error) {
      if (store.isTaken(error)) throw new AirlockError('name_taken', undefined, { cause: error })
      throw error
    }
  }

  #newRow(id: string, of: { caller: Caller; body: CreateSandboxBody; admitted: Admitted }): StoredSandbox {
    const { body, admitted, caller } = of
    const { bootId } = this.#context.readiness.node()
    const now = this.#context.clock.now()
    const endsAt = now + body.maxLifetimeMs
    return {
      id,
      tenant: caller.principal.tenant,
      agent: admitted.agent,
      generation: admitted.generation,
      name: body.name ?? null,
      node: this.#context.node.id,
      bootId,
      template: admitted.template,
      state: 'creating',
      labels: body.labels,
      limits: admitted.limits,
      ttlMs: body.ttlMs,
      idleMs: body.idleMs,
      createdAt: now,
      lastActiveAt: now,
      expiresAt: Math.min(now + body.ttlMs, endsAt),
      endsAt,
      endedAt: null,
      endReason: null,
      error: null,
      isolation: null,
      actor: caller.principal.actor,
      recorded: false,
    }
  }

  #deed(caller: Caller, row: StoredSandbox, body: CreateSandboxBody): Deed {
    const { name, template, labels, limits, generation } = row
    const env = Object.keys(body.env)
    return deedOf(caller, row, {
      point: 'sandbox.create',
      payload: { name, template, labels, limits, generation, env, ttlMs: row.ttlMs, endsAt: row.endsAt },
    })
  }

  #permit(row: StoredSandbox, body: CreateSandboxBody): string {
    const { tenant, agent, generation, template, limits, endsAt } = row
    return this.#context.permits.issue(
      { sandbox: row.id, tenant, agent, generation, template, tier: 'standard', limits, env: body.env, endsAt },
      this.#context.clock.now(),
    )
  }

  /** Its time begins now that it can be used, but not beyond what the permit says. */
  async #activate(row: StoredSandbox, isolation: StoredSandbox['isolation']): Promise<StoredSandbox> {
    const now = this.#context.clock.now()
    const changes = { isolation, lastActiveAt: now, expiresAt: Math.min(now + row.ttlMs, row.endsAt) }
    return this.#context.store.transaction(async (db) => {
      await connect(db, row)
      return moveSandbox(db, row, { to: 'active', changes })
    })
  }

  async #giveUp(row: StoredSandbox, deed: Deed, failure: unknown): Promise<void> {
    const error = describeError(failure)
    this.#context.audit.note({ ...deed, status: 'failed', error })
    await this.#parts.termination.terminateInTurn(row.id, { reason: 'create_failed', actor: 'system', error })
  }
}

/** The agent becomes connected, or is so already by a sandbox that was faster. Fails closed when it was suspended. */
async function connect(db: Queries, row: StoredSandbox): Promise<void> {
  if (await connectAgent(db, row, row.generation)) return
  const agent = await findAgent(db, row)
  if (agent?.state !== 'connected' || agent.generation !== row.generation) throw new AirlockError('agent_not_found')
}
