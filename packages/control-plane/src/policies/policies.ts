import {
  AirlockError,
  BOUNDS,
  describeIssues,
  type EvaluateBody,
  type Evaluation,
  type GuardianStatus,
  isAirlockError,
  type Policy,
  type PolicyCheck,
  type PolicyDocument,
  type PolicyScope,
  type PolicyVersion,
  type PutPolicyBody,
  type Question,
  type RuleInForce,
} from '@airlock/contract'
import { actingAgent } from '../agents/acting-agent.ts'
import { compileDraft, isOwnToSwitch, PLATFORM_PREFIX } from './policy-book.ts'
import { findAgent } from '../store/agents.ts'
import {
  findPolicy,
  insertPolicy,
  listLatest,
  listVersions,
  PLATFORM,
  type PolicyKey,
  storedDocument,
  type StoredPolicy,
} from '../store/policies.ts'
import type { Queries } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import { doRecorded } from '../evidence/evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { isOwned, ownedSandbox } from '../sandboxes/owned-sandbox.ts'
import { recordRefusal } from '../evidence/refusals.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'guardian' | 'policies' | 'ephemeral'>

/** Names that stand for something else among the rules that had a say. */
const RESERVED: ReadonlySet<string> = new Set(['builtin', 'opa', 'approval', 'policies'])

/**
 * Policies: written by an admin of the tenant, or by the platform for everybody. That one is changed is for roles alone, and on
 * record; a policy does not govern it, or it could lock everybody out. Every version is kept.
 */
export class Policies {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async list(caller: Caller, scope: PolicyScope): Promise<readonly PolicyVersion[]> {
    const of = scopeOf(caller, scope)
    return (await this.#world.store.query((db) => listLatest(db, [of]))).map(toVersion)
  }

  async get(
    caller: Caller,
    name: string,
    asked: { readonly scope: PolicyScope; readonly version?: number | undefined },
  ): Promise<Policy> {
    const key = { scope: scopeOf(caller, asked.scope), name }
    const row = await this.#world.store.query((db) => findPolicy(db, key, asked.version))
    if (!row) throw new AirlockError('policy_not_found')
    return toPolicy(row)
  }

  /** Newest first. */
  async versions(
    caller: Caller,
    name: string,
    asked: { readonly scope: PolicyScope; readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<PolicyVersion>> {
    const key = { scope: scopeOf(caller, asked.scope), name }
    const page = { before: beforeOf(asked.cursor), limit: asked.limit + 1 }
    const rows = await this.#world.store.query((db) => listVersions(db, key, page))
    if (rows.length === 0 && page.before === undefined) throw new AirlockError('policy_not_found')
    const named = rows.map((row) => ({ ...row, id: String(row.version) }))
    return toPage(named, asked.limit, toVersion)
  }

  /** In force here when it resolves, and everywhere soon after. */
  async put(caller: Caller, name: string, asked: PutPolicyBody & { readonly scope: PolicyScope }): Promise<Policy> {
    const { document, expectedVersion, scope } = asked
    const said = { policy: name, scope, rules: document.rules.length, off: document.off }
    const row = await this.#write(caller, 'policy.put', {
      name,
      scope,
      said,
      check: () => assertAcceptable(name, document, scope),
      next: (before) => {
        assertVersion(before, expectedVersion)
        return JSON.stringify(document)
      },
    })
    return toPolicy(row)
  }

  /** It is out of force by a version of its own. Doing it again answers the same. */
  async remove(
    caller: Caller,
    name: string,
    asked: { readonly scope: PolicyScope; readonly expectedVersion?: number | undefined },
  ): Promise<void> {
    const { scope, expectedVersion } = asked
    await this.#write(caller, 'policy.remove', {
      name,
      scope,
      said: { policy: name, scope },
      check: () => {},
      next: (before) => {
        if (!before) throw new AirlockError('policy_not_found')
        assertVersion(before, expectedVersion)
        return null
      },
    })
  }

  check(document: PolicyDocument): PolicyCheck {
    const examples = document.rules.flatMap((rule) => [...rule.examples.match, ...rule.examples.notMatch]).length
    const counts = { rules: document.rules.length, examples }
    try {
      compileDraft(document, 1)
      return { isValid: true, problems: [], ...counts }
    } catch (error) {
      if (!isAirlockError(error) || error.code !== 'policy_invalid') throw error
      return { isValid: false, problems: [error.message], ...counts }
    }
  }

  /** What Guardian would say to the caller. What is not theirs is not found, as if they did it. */
  async evaluate(caller: Caller, body: EvaluateBody): Promise<Evaluation> {
    const question = await this.#questionOf(caller, body)
    const { guardian, policies: book } = this.#world
    if (!body.document) return { question, ...(await guardian.explain(question)) }
    if (caller.principal.role !== 'admin') throw new AirlockError('forbidden', 'Drafts are for admins to try.')
    const decision = book.decideWith(body.document, question.tenant)(question)
    return { question, decision, sources: [{ name: 'policies', decision }] }
  }

  status(caller: Caller): GuardianStatus {
    const { policies: book, guardian } = this.#world
    const inForce = book.inForce(caller.principal.tenant)
    const counts = new Map<string, GuardianStatus['rules'][number]>()
    for (const { kind, effect, isOn } of this.rules(caller)) {
      const count = counts.get(`${kind} ${effect}`)?.count ?? 0
      if (isOn) counts.set(`${kind} ${effect}`, { kind, effect, count: count + 1 })
    }
    return {
      default: book.default,
      policies: inForce.map(({ name, scope, version, document, problem }) => {
        const shown = { name, scope, version, rules: document.rules.length, problem }
        return { ...shown, off: [...document.off] }
      }),
      rules: [...counts.values()],
      sources: guardian.sources(),
    }
  }

  rules(caller: Caller): readonly RuleInForce[] {
    const inForce = this.#world.policies.inForce(caller.principal.tenant)
    const off = new Set(inForce.flatMap(({ document }) => document.off))
    return inForce.flatMap(({ name, document }) =>
      document.rules.map(({ id, kind, effect, risk, reason, enabled }) => {
        const isOn = enabled && !off.has(`${name}/${id}`)
        return { policy: name, rule: id, kind, effect, risk, reason, isOn }
      }),
    )
  }

  async #questionOf(caller: Caller, body: EvaluateBody): Promise<Question> {
    const { store } = this.#world
    const { tenant, actor, role } = caller.principal
    const { point, operation } = body
    const sandbox = body.sandbox === undefined ? undefined : await ownedSandbox(store, caller, body.sandbox)
    const agent = sandbox?.agent ?? askedAgent(caller, body)
    if (agent !== null && agent !== sandbox?.agent) await store.query((db) => assertOwnAgent(db, caller, agent))
    const ephemeral = this.#world.ephemeral.has(sandbox?.id ?? null) ? { ephemeral: true } : {}
    return { point, tenant, actor, role, agent, sandbox: sandbox?.id ?? null, ...ephemeral, operation }
  }

  async #write(caller: Caller, point: 'policy.put' | 'policy.remove', change: Change): Promise<StoredPolicy> {
    const { clock, policies: book } = this.#world
    const { tenant, actor } = caller.principal
    const payload = { requestId: caller.requestId, ...change.said }
    const deed = { point, tenant, agent: null, sandbox: null, actor, payload }
    const key = await recordRefusal(this.#world, deed, async () => {
      assertUnbound(caller)
      change.check()
      return { scope: scopeOf(caller, change.scope), name: change.name }
    })
    const made = { createdAt: clock.now(), createdBy: actor }
    return doRecorded(this.#world, deed, async () => {
      const row = await this.#insert(key, change.next, made)
      await book.refresh()
      return { value: row, payload: { version: row.version } }
    })
  }

  async #insert(
    key: PolicyKey,
    next: Change['next'],
    made: Pick<StoredPolicy, 'createdAt' | 'createdBy'>,
  ): Promise<StoredPolicy> {
    const { store } = this.#world
    try {
      return await store.transaction(async (db) => {
        const before = await findPolicy(db, key)
        // A try whose answer was lost wrote it.
        if (before?.createdAt === made.createdAt && before.createdBy === made.createdBy) return before
        const document = next(before)
        if (before && before.document === document) return before
        await assertRoom(db, key, before)
        const row = { ...key, ...made, version: (before?.version ?? 0) + 1, document }
        await insertPolicy(db, row)
        return row
      })
    } catch (error) {
      if (store.isTaken(error)) throw new AirlockError('stale_version', undefined, { cause: error })
      throw error
    }
  }
}

interface Change {
  readonly name: string
  readonly scope: PolicyScope
  readonly said: Readonly<Record<string, string | number | string[]>>
  readonly check: () => void
  /** The document that shall hold, null for none, given what is there. */
  readonly next: (before: StoredPolicy | undefined) => string | null
}

/** The tenant's own, or that of the whole server, which is for the platform alone. */
function scopeOf({ principal }: Caller, scope: PolicyScope): string {
  if (scope === 'tenant') return principal.tenant
  if (principal.platform) return PLATFORM
  throw new AirlockError('forbidden', 'Policies of the whole server are for keys of the platform.')
}

function assertAcceptable(name: string, document: PolicyDocument, scope: PolicyScope): void {
  if (document.name !== name)
    throw new AirlockError('policy_invalid', `The document is called "${document.name}", not "${name}".`)
  if (RESERVED.has(name)) throw new AirlockError('policy_invalid', `The name "${name}" is taken.`)
  if (name.startsWith(PLATFORM_PREFIX) !== (scope === 'platform'))
    throw new AirlockError(
      'policy_invalid',
      `Policies of the whole server, and no others, are called "${PLATFORM_PREFIX}…".`,
    )
  const foreign = scope === 'platform' ? undefined : document.off.find((rule) => !isOwnToSwitch(rule))
  if (foreign !== undefined)
    throw new AirlockError(
      'policy_invalid',
      `${foreign} is a rule of the whole server: only the platform switches it off.`,
    )
  compileDraft(document, 1)
}

function assertVersion(before: StoredPolicy | undefined, expected: number | undefined): void {
  const version = before?.version ?? 0
  if (expected === undefined || expected === version) return
  throw new AirlockError('stale_version', `The policy is in version ${version}, not ${expected}.`)
}

async function assertRoom(db: Queries, key: PolicyKey, before: StoredPolicy | undefined): Promise<void> {
  if (before && before.version >= BOUNDS.policyVersions) throw new AirlockError('too_many_policies')
  if (before && before.document !== null) return
  const inForce = (await listLatest(db, [key.scope])).filter(({ document }) => document !== null)
  if (inForce.length >= BOUNDS.policies) throw new AirlockError('too_many_policies')
}

/** Whoever is bound asks for an agent of its own. What concerns no agent has the kind "other". */
function askedAgent({ principal }: Caller, { agent, operation }: EvaluateBody): string | null {
  if (agent !== undefined) return agent
  return principal.agents === null || operation.kind === 'other' ? null : actingAgent(principal, undefined)
}

async function assertOwnAgent(db: Queries, caller: Caller, agent: string): Promise<void> {
  const { principal } = caller
  const key = { tenant: principal.tenant, agent }
  if (!isOwned(principal, key) || !(await findAgent(db, key))) throw new AirlockError('agent_not_found')
}

function beforeOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  if (!/^\d{1,9}$/.test(cursor)) throw new AirlockError('invalid_request', 'cursor: is not one of ours')
  return Number(cursor)
}

function toVersion({ scope, name, version, document, createdAt, createdBy }: StoredPolicy): PolicyVersion {
  return {
    scope: scope === PLATFORM ? 'platform' : 'tenant',
    name,
    version,
    inForce: document !== null,
    createdAt: new Date(createdAt).toISOString(),
    createdBy,
  }
}

function toPolicy(row: StoredPolicy): Policy {
  if (row.document === null) return { ...toVersion(row), document: null }
  const parsed = storedDocument.safeParse(row.document)
  if (!parsed.success) throw new AirlockError('policy_invalid', describeIssues(parsed.error))
  return { ...toVersion(row), document: parsed.data }
}
