import {
  AirlockError,
  type Approval,
  type ApprovalDetail,
  type ApprovalEvent,
  type ApprovalScope,
  type ApprovalState,
  type ApproveBody,
  BOUNDS,
  type RejectBody,
} from '@airlock/contract'
import {
  expireDue,
  findApproval,
  type FullApproval,
  listApprovals,
  moveApproval,
  removeEnded,
  type StoredApproval,
} from '../store/approvals.ts'
import { approvalFeed } from './feed.ts'
import { assertOtherHand } from './hands.ts'
import { toApproval } from './nouns.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { isOwned, mayUseAgent } from '../sandboxes/owned-sandbox.ts'
import { recordRefusal } from '../evidence/refusals.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'approvalNews'>
type AnswerPoint = 'approval.approve' | 'approval.reject' | 'approval.revoke'

interface ListApprovals {
  readonly state: ApprovalState | 'all'
  readonly agent?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** How long an answer is shown after it has ended; it stays in the evidence. */
const KEPT_MS = 7 * 24 * 3600 * 1000
const PRUNE_EVERY = 600

/**
 * What people do with asks: look, approve, reject, take back. Not by who asked, nor by who is bound to agents; what is critical
 * needs an admin. An approval waits for its record, a no does not.
 */
export class ApprovalAnswers {
  readonly #world: World
  #looks = 0

  constructor(world: World) {
    this.#world = world
  }

  /** Newest first. */
  async list(caller: Caller, asked: ListApprovals): Promise<Page<Approval>> {
    const { store } = this.#world
    const agents = visibleAgents(caller, asked.agent)
    const { tenant } = caller.principal
    const filter = { tenant, state: asked.state, agents, before: asked.cursor, limit: asked.limit + 1 }
    const rows = await store.query((db) => listApprovals(db, filter))
    return toPage(rows, asked.limit, (row) => this.#show(row))
  }

  /** What is pending, oldest first, then all that is asked and answered, until the signal aborts. */
  events(
    caller: Caller,
    of: { readonly agent?: string | undefined; readonly signal: AbortSignal },
  ): AsyncIterable<ApprovalEvent> {
    const { tenant } = caller.principal
    return approvalFeed(
      { ...this.#world, news: this.#world.approvalNews },
      { tenant, agents: visibleAgents(caller, of.agent), signal: of.signal },
    )
  }

  async get(caller: Caller, id: string): Promise<ApprovalDetail> {
    const row = await this.#owned(caller, id)
    return { ...this.#show(row), question: row.question }
  }

  async approve(caller: Caller, id: string, body: ApproveBody): Promise<Approval> {
    const { store, clock, approvalNews: news } = this.#world
    const row = await this.#answerable(caller, id, 'approval.approve')
    const now = clock.now()
    const { scope, note = null } = body
    const expiresAt = endOf(row, body, now)
    assertState(row, now, 'pending')
    const payload = { scope, until: new Date(expiresAt).toISOString(), note }
    return doRecorded(this.#world, answerDeed(caller, row, { point: 'approval.approve', payload }), async () => {
      const answer = { answeredBy: caller.principal.actor, answeredAt: now, changedAt: now, note }
      const change = { state: 'approved', scope, expiresAt, ...answer } as const
      const moved = await store.transaction((db) => moveApproval(db, { id, from: 'pending', goodAt: now }, change))
      const approved = moved ?? (await this.#mine(id, change))
      news.publish(approved)
      return { value: this.#show(approved) }
    })
  }

  async reject(caller: Caller, id: string, body: RejectBody): Promise<Approval> {
    const { note = null } = body
    return this.#end(caller, id, { point: 'approval.reject', from: 'pending', to: 'rejected', note })
  }

  async revoke(caller: Caller, id: string): Promise<Approval> {
    return this.#end(caller, id, { point: 'approval.revoke', from: 'approved', to: 'revoked', note: null })
  }

  /** Once in a while. */
  async look(): Promise<void> {
    await this.expire()
    if (++this.#looks % PRUNE_EVERY === 0) await this.prune()
  }

  /** Marks what nobody answered or used in time, with its record. Other nodes asked too, so it goes by the clock of the store. */
  async expire(): Promise<void> {
    const { store, audit, clock, approvalNews: news } = this.#world
    for (const row of await store.transaction((db) => expireDue(db, store.now(clock)))) {
      const deed = deedAbout(row, 'system')
      audit.note({ ...deed, point: 'approval.expire', status: 'done' })
      news.publish(row)
    }
  }

  async prune(): Promise<void> {
    const { store, clock } = this.#world
    await store.query((db) => removeEnded(db, { now: store.now(clock), keptMs: KEPT_MS }))
  }

  /** It reduces: nothing is waited for but the row. */
  async #end(
    caller: Caller,
    id: string,
    what: {
      readonly point: 'approval.reject' | 'approval.revoke'
      readonly from: 'pending' | 'approved'
      readonly to: 'rejected' | 'revoked'
      readonly note: string | null
    },
  ): Promise<Approval> {
    const { store, clock, audit, approvalNews: news } = this.#world
    const row = await this.#answerable(caller, id, what.point)
    const now = clock.now()
    assertState(row, now, what.from)
    const answer = { answeredBy: caller.principal.actor, answeredAt: now, changedAt: now }
    const said = what.note === null ? {} : { note: what.note }
    const change = { state: what.to, ...answer, ...said } as const
    const moved = await store.transaction((db) => moveApproval(db, { id, from: what.from, goodAt: now }, change))
    const ended = moved ?? (await this.#mine(id, change))
    audit.note({ ...answerDeed(caller, row, { point: what.point, payload: { note: what.note } }), status: 'done' })
    news.publish(ended)
    return this.#show(ended)
  }

  /** Somebody else was first, unless it was we and only the answer was lost. */
  async #mine(id: string, change: Pick<StoredApproval, 'state' | 'answeredBy' | 'answeredAt'>) {
    const row = await this.#world.store.query((db) => findApproval(db, id))
    if (!row) throw new AirlockError('approval_not_found')
    const { state, answeredBy, answeredAt } = change
    if (row.state === state && row.answeredBy === answeredBy && row.answeredAt === answeredAt) return row
    throw ended(row, this.#world.clock.now())
  }

  async #answerable(caller: Caller, id: string, point: AnswerPoint): Promise<StoredApproval> {
    const row = await this.#owned(caller, id)
    await recordRefusal(this.#world, answerDeed(caller, row, { point, payload: {} }), async () => {
      assertUnbound(caller)
      if (row.decision.risk === 'critical' && caller.principal.role !== 'admin')
        throw new AirlockError('forbidden', 'What is critical is answered by an admin.', { hint: 'Ask an admin.' })
      // Whoever asked may still take the approval back.
      if (point !== 'approval.revoke') await assertOtherHand(this.#world.store, caller, row.requester)
    })
    return row
  }

  /** Not yours is not found. */
  async #owned(caller: Caller, id: string): Promise<FullApproval> {
    const row = await this.#world.store.query((db) => findApproval(db, id))
    const { principal } = caller
    const isSeen =
      row && (row.agent === null ? isOfTenant(caller, row) : isOwned(principal, { ...row, agent: row.agent }))
    if (!row || isSeen !== true) throw new AirlockError('approval_not_found')
    return row
  }

  #show(row: StoredApproval): Approval {
    return toApproval(row, this.#world.clock.now())
  }
}

function isOfTenant({ principal }: Caller, row: StoredApproval): boolean {
  return principal.tenant === row.tenant && (principal.agents === null || row.requester === principal.actor)
}

/** Null is every agent of the tenant. */
function visibleAgents({ principal }: Caller, agent: string | undefined): readonly string[] | null {
  if (agent === undefined) return principal.agents
  return mayUseAgent(principal, agent) ? [agent] : []
}

/** Until when an approval is good. What a scope does not fit is said, not guessed. */
function endOf(row: StoredApproval, { scope, until }: ApproveBody, now: number): number {
  const misfit = misfits(row, scope, until !== undefined)
  if (misfit !== undefined) throw new AirlockError('invalid_request', misfit)
  if (until === undefined) return now + (scope === 'once' ? BOUNDS.approvalMs : BOUNDS.approvalLifeMs)
  const end = Date.parse(until)
  if (end <= now || end > now + BOUNDS.approvalLifeMs)
    throw new AirlockError('invalid_request', 'until: must be later than now, by at most 30 days')
  return end
}

function misfits(row: StoredApproval, scope: ApprovalScope, isEndGiven: boolean): string | undefined {
  if (scope === 'once' && isEndGiven) return 'until: an approval for once has its own end'
  if (scope === 'until' && !isEndGiven) return 'until: must say when it ends'
  if (scope === 'sandbox' && row.sandbox === null) return 'scope: this was not asked for in a sandbox'
  return scope === 'agent' && row.agent === null ? 'scope: this was not asked for by an agent' : undefined
}

function assertState(row: StoredApproval, now: number, state: 'pending' | 'approved'): void {
  if (row.state !== state || row.expiresAt <= now) throw ended(row, now)
}

/** Says what became of it, for who was too late. */
function ended(row: StoredApproval, now: number): AirlockError {
  const { state, answeredBy, scope } = toApproval(row, now)
  const by = answeredBy === null ? '' : ` by ${answeredBy}`
  const how = state === 'approved' ? ` (${scope ?? 'once'})` : ''
  return new AirlockError('approval_ended', `The approval is ${state}${by}${how}.`, { approval: row.id })
}

function deedAbout(row: StoredApproval, actor: string): Omit<Deed, 'point'> {
  const { tenant, agent, sandbox, hash, requester, decision } = row
  const payload = { approval: row.id, hash, for: row.point, requester, risk: decision.risk }
  return { tenant, agent, sandbox, actor, payload }
}

function answerDeed<P extends AnswerPoint>(
  caller: Caller,
  row: StoredApproval,
  what: { readonly point: P; readonly payload: Deed['payload'] },
): Deed & { readonly point: P } {
  const deed = deedAbout(row, caller.principal.actor)
  return { ...deed, point: what.point, payload: { requestId: caller.requestId, ...deed.payload, ...what.payload } }
}
