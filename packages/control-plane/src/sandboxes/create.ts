import {
  AirlockError,
  type Conditions,
  type CreatedSandbox,
  type CreateSandboxBody,
  isAirlockError,
  type Operation,
  overlaps,
  type PermitMount,
  type Tier,
} from '@airlock/contract'
import { Cleanup, newId } from '@airlock/std'
import { actingAgent } from '../agents/acting-agent.ts'
import { admit, type Admitted, type SandboxOfAgent } from './admit.ts'
import { reserve } from '../spend/reserve.ts'
import { assertNotKilled } from '../kills/kill-list.ts'
import { assertAsDecided, grantedMounts, toMount } from '../agents/granted-mounts.ts'
import { findWorktreeGrant, grantedWorktree } from '../agents/granted-worktree.ts'
import type { StoredAgent } from '../store/agents.ts'
import { findReservation } from '../store/budgets.ts'
import { findLivingByName, findSandbox, insertSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import type { Queries } from '../store/engine/store.ts'
import type { Activity } from './activity.ts'
import { connectAgent } from '../agents/agent-moves.ts'
import { nodeCapacity } from '../nodes/node-capacity.ts'
import type { Connections } from '../doors/connections.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { toCreatedSandbox } from './created-sandbox.ts'
import { type Deed, describeError, type Governed, saying } from '../evidence/evidence.ts'
import { moveSandbox } from './lifecycle.ts'
import { assertHere, awake, writesOutside } from './owned-sandbox.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import type { Templates } from '../templates/templates.ts'
import type { Termination } from './terminate.ts'

interface CreationParts {
  readonly termination: Termination
  readonly activity: Activity
  readonly templates: Templates
  readonly connections: Connections
}

/** What was asked for, with what the template adds, the image that it stands on, what it is reserved by, and what was decided. */
type Asked = SandboxOfAgent &
  Decided & { readonly image: string; readonly tier: 'standard' | 'strict'; readonly reservation: string }

/** What Guardian let pass, and of which mounts it knew. */
interface Decided {
  readonly passed: Governed
  readonly known: readonly PermitMount[]
}

/** The place that was taken, and what the permit has to say of it. */
interface Inserted {
  readonly row: StoredSandbox
  readonly mounts: readonly PermitMount[]
}

/** How often a name may change hands while we look. */
const NAME_TRIES = 3

/**
 * Creation, the model for everything that has effects: check, reserve and write the row, record, start, activate,
 * record. Whatever fails, the sandbox is destroyed, its row says why, what was reserved is free again, and the caller hears
 * the first error.
 */
export class Creation {
  readonly #context: Context
  readonly #parts: CreationParts
  readonly #underWay = new Set<string>()

  constructor(context: Context, parts: CreationParts) {
    this.#context = context
    this.#parts = parts
  }

  /** `id`: a new one that its maker has written down, so that a crash leaves nothing unnamed. */
  async create(
    caller: Caller,
    wanted: CreateSandboxBody,
    id = newId('sbx', this.#context.clock.now()),
  ): Promise<CreatedSandbox> {
    const { failpoint, clock, turns } = this.#context
    const body = await this.#ofAgent(caller, wanted)
    const admitted = await this.#admit(caller, body)
    await failpoint('create.admitted')
    const { template, env } = admitted
    const decided = await this.#pass(caller, body, admitted)
    const tier = decided.passed.decision.conditions.tier ?? askedTier(body, template.spec)
    const image = await this.#parts.templates.imageFor(caller, template)
    const asked = { ...body, ...decided, env, image, tier, reservation: newId('rsv', clock.now()) }
    this.#underWay.add(id)
    try {
      return await turns.run(id, async () => this.#createInTurn(id, caller, asked))
    } catch (error) {
      // A kill breaks it off somewhere: that is what the caller should hear.
      this.#assertAlive(caller.principal.tenant, body.agent)
      throw error
    } finally {
      this.#underWay.delete(id)
    }
  }

  /** The living sandbox of that name once it is active, or a new one. Several callers at once get the same one. */
  async getOrCreate(caller: Caller, wanted: CreateSandboxBody & { readonly name: string }): Promise<CreatedSandbox> {
    const { store, turns } = this.#context
    const body = await this.#ofAgent(caller, wanted)
    const of = { tenant: caller.principal.tenant, agent: body.agent, name: wanted.name }
    for (let attempt = 1; ; attempt++) {
      await this.#admit(caller, body)
      const living = await store.query((db) => findLivingByName(db, of))
      if (living) await assertHere(this.#context, living)
      // One that is being made or ended is waited for: its turn comes after that.
      const settled = living && (await turns.run(living.id, () => store.query((db) => findSandbox(db, living.id))))
      if (settled?.state === 'active' || settled?.state === 'paused') {
        const used = await awake(this.#context, caller, settled)
        await this.#parts.activity.touch(used)
        return await toCreatedSandbox(this.#context, this.#parts.activity.current(used))
      }
      try {
        return await this.create(caller, body)
      } catch (error) {
        if (attempt >= NAME_TRIES || !isAirlockError(error) || error.code !== 'name_taken') throw error
      }
    }
  }

  /** Also while the store does not have the kill yet. */
  #assertAlive(tenant: string, agent: string): void {
    this.#context.kills.assertAlive({ tenant, agent, sandbox: null })
  }

  /** Whether this process is making that sandbox now. */
  isCreating(id: string): boolean {
    return this.#underWay.has(id)
  }

  get underWay(): number {
    return this.#underWay.size
  }

  async admit(caller: Caller, wanted: CreateSandboxBody): Promise<Admitted> {
    return this.#admit(caller, await this.#ofAgent(caller, wanted))
  }

  /** What Guardian will be asked when it is created: the sandbox and its mounts. Throws like `admit`. */
  async foresee(caller: Caller, wanted: CreateSandboxBody): Promise<readonly Operation[]> {
    const body = await this.#ofAgent(caller, wanted)
    const admitted = await this.#admit(caller, body)
    return operationsOf(body, admitted, await this.#knownMounts(caller, body, admitted))
  }

  async #ofAgent(caller: Caller, wanted: CreateSandboxBody): Promise<SandboxOfAgent> {
    return recordRefusal(this.#context, refusedDeed(caller, wanted), async () => ({
      ...wanted,
      agent: actingAgent(caller.principal, wanted.agent),
    }))
  }

  /** Who is refused here has nothing yet that could be undone: that it was refused is the only trace. */
  async #admit(caller: Caller, body: SandboxOfAgent): Promise<Admitted> {
    const { store } = this.#context
    return recordRefusal(this.#context, refusedDeed(caller, body), async () =>
      store.query(async (db) => {
        this.#assertAlive(caller.principal.tenant, body.agent)
        const admitted = await admit(db, caller.principal, body)
        this.#context.models.namesOf(admitted.models)
        return admitted
      }),
    )
  }

  /** The sandbox and each of its mounts are asked about, as one. */
  async #pass(caller: Caller, body: SandboxOfAgent, admitted: Admitted): Promise<Decided> {
    const known = await this.#knownMounts(caller, body, admitted)
    const operations = operationsOf(body, admitted, known)
    const refused = refusedDeed(caller, body)
    const deed = { ...refused, payload: { ...refused.payload, ...askedFor(body, admitted, known) } }
    return { passed: await this.#context.guardian.pass(caller, deed, operations), known }
  }

  async #knownMounts(caller: Caller, body: SandboxOfAgent, { agent }: Admitted): Promise<readonly PermitMount[]> {
    const { store, node } = this.#context
    const of = { tenant: caller.principal.tenant, agent, node: node.id }
    const mounts = await store.query((db) => grantedMounts(db, of))
    const { worktree } = body
    if (!worktree) return mounts
    return recordRefusal(this.#context, refusedDeed(caller, body), async () => {
      const placed = await grantedWorktree(this.#context, of, worktree)
      const inTheWay = mounts.find((mount) => overlaps(mount, placed))
      if (inTheWay)
        throw new AirlockError('worktree_refused', `${placed.target} is taken by a grant of ${inTheWay.path}.`)
      return [...mounts, placed]
    })
  }

  async #createInTurn(id: string, caller: Caller, body: Asked): Promise<CreatedSandbox> {
    const { audit, failpoint, log, clock } = this.#context
    const startedAt = clock.now()
    const undo = new Cleanup()
    let failure: unknown
    try {
      const { row, mounts } = await this.#insert(id, caller, body)
      const deed = this.#deed(row, body)
      undo.add('sandbox', () => this.#giveUp(row, deed, failure))
      await failpoint('create.row-written')
      await audit.require({ ...deed, status: 'requested' })
      await failpoint('create.recorded')
      const { isolation, image } = await this.#context.dataPlane.start(this.#permit(row, { ...body, mounts }))
      await failpoint('create.started')
      const token = await this.#parts.connections.open(row)
      const { active, agent } = await this.#activate(row, { isolation, image })
      if (body.ephemeral) this.#context.ephemeral.add(id, writesOutside(active), madeFrom(active, body))
      await failpoint('create.activated')
      const payload = { ...deed.payload, isolation, image, agent: snapshotOf(agent) }
      await audit.require({ ...deed, status: 'done', durationMs: clock.now() - startedAt, payload })
      this.#parts.connections.note(active, token, { actor: deed.actor, cause: 'creation' })
      const created = await toCreatedSandbox(this.#context, active)
      undo.release()
      return created
    } catch (error) {
      failure = error
      for (const left of await undo.run()) log.error('a failed creation is left to the sweep', { sandbox: id, ...left })
      throw error
    }
  }

  /** Budgets, capacity, agent and name are decided in the transaction that takes the place. */
  async #insert(id: string, caller: Caller, body: Asked): Promise<Inserted> {
    const { store } = this.#context
    try {
      return await recordRefusal(this.#context, refusedDeed(caller, body), async () =>
        store.transaction(async (db) => this.#takePlace(db, id, { caller, body })),
      )
    } catch (error) {
      if (store.isTaken(error)) throw new AirlockError('name_taken', undefined, { cause: error })
      throw error
    }
  }

  async #takePlace(
    db: Queries,
    id: string,
    asked: { readonly caller: Caller; readonly body: Asked },
  ): Promise<Inserted> {
    const { readiness, node, budgetDefaults: defaults, clock } = this.#context
    const { caller, body } = asked
    const admitted = await admit(db, caller.principal, body)
    this.#assertAlive(caller.principal.tenant, admitted.agent)
    // Again: an image may have been built since the request came.
    readiness.assert('granting')
    if (body.onIdle === 'pause' && !readiness.node().pause)
      throw new AirlockError('isolation_unavailable', 'This node cannot pause sandboxes.')
    const of = { tenant: caller.principal.tenant, agent: admitted.agent, node: node.id }
    const asking = { ...of, sandbox: id, reservation: body.reservation, limits: admitted.limits, now: clock.now() }
    await reserve(db, asking, { defaults, capacity: nodeCapacity(this.#context) })
    const granted = await grantedMounts(db, of)
    assertAsDecided(granted, body.known)
    const worktree = body.known.filter(({ mode }) => mode === 'worktree')
    for (const { path } of worktree) await findWorktreeGrant(db, of, path)
    const mounts = [...mountsUnder(body.passed.decision.conditions, granted), ...worktree]
    const row = { ...this.#newRow(id, { caller, body, admitted }), mounts: mounts.map(toMount) }
    await insertSandbox(db, row)
    return { row, mounts }
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
      template: admitted.template.name,
      image: null,
      state: 'creating',
      labels: body.labels,
      limits: admitted.limits,
      mounts: [],
      doors: admitted.doors,
      models: this.#context.models.namesOf(admitted.models),
      modelLimits: admitted.modelLimits,
      ttlMs: body.ttlMs,
      idleMs: body.idleMs,
      onIdle: body.onIdle,
      maxPausedMs: body.maxPausedMs,
      pausedAt: null,
      pausedBy: null,
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

  #deed(row: StoredSandbox, body: Asked): Governed {
    const { name, template, labels, limits, mounts, doors, models, modelLimits, generation } = row
    const env = Object.keys(body.env)
    const { ttlMs, endsAt } = row
    const { reservation, tier } = body
    const made = { name, template, tier, labels, limits, mounts, doors, generation, env, ttlMs, endsAt, reservation }
    return saying(body.passed, models.length > 0 ? { ...made, models, modelLimits } : made, row.id)
  }

  #permit(row: StoredSandbox, asked: Asked & Pick<Inserted, 'mounts'>): string {
    const { tenant, agent, node, generation, template, limits, doors, endsAt } = row
    const { env, image, tier, reservation } = asked
    const { conditions, policyVersion } = asked.passed.decision
    const who = { sandbox: row.id, node, tenant, agent, generation, reservation }
    const what = { template, image, limits, env, mounts: [...asked.mounts], endsAt }
    return this.#context.permits.issue(
      { ...who, ...what, tier, doors, conditions, policyVersion },
      this.#context.clock.now(),
    )
  }

  /** Its time begins now that it can be used, but not beyond what the permit says. */
  async #activate(
    row: StoredSandbox,
    found: Pick<StoredSandbox, 'isolation' | 'image'>,
  ): Promise<{ readonly active: StoredSandbox; readonly agent: StoredAgent }> {
    const now = this.#context.clock.now()
    const changes = { ...found, lastActiveAt: now, expiresAt: Math.min(now + row.ttlMs, row.endsAt) }
    return this.#context.store.transaction(async (db) => {
      // Whoever was killed meanwhile gets nothing of it.
      await assertNotKilled(db, row)
      this.#assertAlive(row.tenant, row.agent)
      if ((await findReservation(db, row.id)) === undefined)
        throw new AirlockError('timeout', 'This node was held for lost before the sandbox was up.')
      const agent = await connectAgent(db, row, { generation: row.generation, at: now })
      return { active: await moveSandbox(db, row, { to: 'active', changes }), agent }
    })
  }

  async #giveUp(row: StoredSandbox, deed: Governed, failure: unknown): Promise<void> {
    const error = describeError(failure)
    this.#context.audit.note({ ...deed, status: 'failed', error })
    await this.#parts.termination.terminateInTurn(row.id, { reason: 'create_failed', actor: 'system', error })
  }
}

/** The agent as it was when its sandbox became active. */
function snapshotOf({ state, generation, approved, version, labels }: StoredAgent) {
  return { state, generation, approved, version, labels }
}

/** What programs in it can tell of its making, and whom it is for. */
function madeFrom({ tenant, agent, template, image, mounts, doors, models }: StoredSandbox, { env, tier }: Asked) {
  return { tenant, agent, template, image, mounts, doors, models, env, tier }
}

/** Of a sandbox that was not even begun. */
function refusedDeed(caller: Caller, body: CreateSandboxBody): Deed {
  const { tenant, actor } = caller.principal
  const { agent = null, name = null, template } = body
  const payload = { requestId: caller.requestId, name, template }
  return { point: 'sandbox.create', tenant, agent, sandbox: null, actor, payload }
}

/** The caller may raise what the template says, never lower it. */
function askedTier(body: Pick<CreateSandboxBody, 'tier'>, template: Pick<CreateSandboxBody, 'tier'>): Tier {
  return body.tier === 'strict' ? 'strict' : template.tier
}

/** What rules look at. */
function askedFor(body: CreateSandboxBody, admitted: Admitted, known: readonly PermitMount[]) {
  const { template, limits } = admitted
  const { labels, maxLifetimeMs: lifetimeMs } = body
  const mounts = known.map(({ path, mode }) => ({ path, mode }))
  const env = Object.keys(admitted.env)
  return { template: template.name, tier: askedTier(body, template.spec), limits, labels, lifetimeMs, env, mounts }
}

function operationsOf(
  body: CreateSandboxBody,
  admitted: Admitted,
  known: readonly PermitMount[],
): readonly [Operation, ...Operation[]] {
  const asked = askedFor(body, admitted, known)
  return [{ kind: 'sandbox', ...asked }, ...asked.mounts.map((mount): Operation => ({ kind: 'mount', ...mount }))]
}

function mountsUnder({ readOnly }: Conditions, mounts: readonly PermitMount[]): readonly PermitMount[] {
  return readOnly ? mounts.map((mount) => ({ ...mount, mode: 'ro' })) : mounts
}
