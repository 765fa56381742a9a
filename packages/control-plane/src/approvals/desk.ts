import type { AuditSink } from '@airlock/audit'
import { AirlockError, BOUNDS, type Decision, type Failpoint, type NewRecord, type Question } from '@airlock/contract'
import { type Clock, newId } from '@airlock/std'
import {
  countPending,
  findApproval,
  findRelated,
  type FullApproval,
  insertPending,
  moveApproval,
  type StoredApproval,
} from '../store/approvals.ts'
import type { Queries, Store } from '../store/engine/store.ts'
import { covers } from './cover.ts'
import { type ApprovalKey, approvalKey } from './key.ts'
import type { ApprovalNews } from './news.ts'
import { shownQuestion, summaryOf } from './summary.ts'
import type { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'
import type { AnyCaller, ApprovalWait } from '../app/caller.ts'
import type { Approvals } from '../policies/guardian.ts'

interface World {
  readonly store: Store
  readonly audit: AuditSink
  readonly clock: Clock
  readonly failpoint: Failpoint
  readonly news: ApprovalNews
  readonly ephemeral: Pick<EphemeralSandboxes, 'historyOf' | 'seal' | 'unseal'>
}

/** An answer that another node took is seen within this time. */
const LOOK_MS = 500
/** Requests that wait at once, those of programs in sandboxes among them, and what they hold in memory. */
const WAITING = 1000
const WAITING_INSIDE = 500
const WAITING_BYTES = 128 * 1024 * 1024

/** What a request meets: an approval that lets it pass, a no, or an ask that is pending. */
type Found =
  | { readonly kind: 'approved' | 'rejected'; readonly row: StoredApproval }
  | { readonly kind: 'pending'; readonly row: StoredApproval; readonly isNew: boolean }
  /** It was answered while we looked. */
  | { readonly kind: 'answered' }

/** One ask: what is looked for, and what is written when nothing is there. */
interface Ask {
  readonly caller: AnyCaller
  readonly key: ApprovalKey
  readonly decision: Decision
  readonly fresh: FullApproval
  /** Names this use of an approval, so that a write whose answer was lost is known again. */
  readonly use: string
}

/**
 * Where an *ask* of Guardian meets the answers of people. An approval that is good once is spent by compare and set, after its record
 * and before anything happens: of two requests at once one passes, and after a crash neither passes again.
 */
export class ApprovalDesk implements Approvals {
  readonly #world: World
  #waiting = 0
  #waitingInside = 0
  #waitingBytes = 0

  constructor(world: World) {
    this.#world = world
  }

  async settle(caller: AnyCaller, question: Question, decision: Decision): Promise<Decision | 'again'> {
    const { store, ephemeral } = this.#world
    const key = await approvalKey(caller, question, ephemeral)
    const ask = this.#askOf(caller, question, { decision, key })
    const found =
      (await store.query((db) => this.#find(db, ask))) ?? (await store.transaction((db) => this.#open(db, ask)))
    switch (found.kind) {
      case 'approved':
        return this.#use(found.row, ask)
      case 'rejected':
        throw rejected(found.row)
      case 'answered':
        return 'again'
      case 'pending':
        this.#told(found, caller)
        return this.#waitInLine(found.row, caller)
    }
  }

  #askOf(caller: AnyCaller, question: Question, of: { readonly decision: Decision; readonly key: ApprovalKey }): Ask {
    const now = this.#world.clock.now()
    const { tenant, actor, agent, sandbox, point } = question
    const shown = shownQuestion(question)
    const fresh: FullApproval = {
      id: newId('apr', now),
      tenant,
      requester: actor,
      agent,
      sandbox,
      point,
      hash: of.key.hash,
      wideHash: of.key.wideHash,
      decision: of.decision,
      question: shown,
      summary: summaryOf(shown),
      state: 'pending',
      scope: null,
      createdAt: now,
      changedAt: now,
      expiresAt: now + BOUNDS.approvalMs,
      answeredBy: null,
      answeredAt: null,
      note: null,
      usedAt: null,
      usedBy: null,
    }
    return { ...of, caller, fresh, use: newId('use', now) }
  }

  /** Those that may be used again come first, so that a single one is kept. */
  async #find(db: Queries, { fresh, decision }: Ask): Promise<Found | undefined> {
    const related = await findRelated(db, fresh)
    const good = related.filter(
      (row) => row.expiresAt > fresh.createdAt && covers(row.decision, decision) && isFor(row, fresh),
    )
    const approved = good.filter(({ state }) => state === 'approved')
    const passes = approved.find(isWide) ?? approved[0]
    if (passes) return { kind: 'approved', row: passes }
    const refused = good.find(({ state }) => state === 'rejected')
    if (refused) return { kind: 'rejected', row: refused }
    const pending = good.find(({ state }) => state === 'pending')
    return pending && { kind: 'pending', row: pending, isNew: false }
  }

  /** What was pending is over its time, or was asked when less asked: it makes room. */
  async #open(db: Queries, { fresh, caller }: Ask): Promise<Found> {
    const now = fresh.createdAt
    const { tenant, agent, hash, requester } = fresh
    for (const { id, state } of await findRelated(db, fresh))
      if (state === 'pending' && id !== fresh.id)
        await moveApproval(db, { id, from: 'pending' }, { state: 'expired', changedAt: now })
    const { ofAgent, ofTenant, ofRequester } = await countPending(db, { tenant, agent, requester, now })
    if (ofAgent >= BOUNDS.pendingApprovals || ofTenant >= BOUNDS.tenantPendingApprovals) throw crowded()
    if (isInside(caller) && ofRequester >= BOUNDS.pendingAsks) throw crowded()
    if (await insertPending(db, fresh)) return { kind: 'pending', row: fresh, isNew: true }
    const joined = (await findRelated(db, fresh)).find((row) => row.state === 'pending' && row.hash === hash)
    return joined ? { kind: 'pending', row: joined, isNew: joined.id === fresh.id } : { kind: 'answered' }
  }

  /** `again` when somebody else took it meanwhile. */
  async #use(row: StoredApproval, ask: Ask): Promise<Decision | 'again'> {
    const { audit, failpoint, news } = this.#world
    const record = useRecord(row, ask.caller)
    await audit.require({ ...record, status: 'requested' })
    if (!this.#seal(ask)) {
      audit.note({ ...record, status: 'failed', error: { code: 'approval_ended', message: 'The sandbox changed.' } })
      return 'again'
    }
    const used = await this.#take(row, ask)
    if (!used) {
      audit.note({ ...record, status: 'failed', error: { code: 'approval_ended', message: 'Another was first.' } })
      return 'again'
    }
    await failpoint('approval.used')
    audit.note({ ...record, status: 'done' })
    if (used.state === 'used') news.publish(used)
    const { risk, rules } = ask.decision
    const reason = `Approved by ${row.answeredBy ?? 'nobody'}.`
    const rule = { policy: 'approval', rule: row.id, effect: 'allow', risk, reason } as const
    return { ...ask.decision, effect: 'allow', rules: [...rules, rule] }
  }

  /** What was found by its history is done in a sandbox that nothing else changes from here on. */
  #seal({ key: { history }, fresh: { sandbox, point } }: Ask): boolean {
    if (history === undefined || sandbox === null) return true
    return this.#world.ephemeral.seal(sandbox, point, history)
  }

  async #take(row: StoredApproval, ask: Ask): Promise<StoredApproval | undefined> {
    const { store, ephemeral } = this.#world
    const { sandbox } = ask.fresh
    let used: StoredApproval | undefined
    try {
      used = await store.transaction((db) => take(db, row, ask))
      return used
    } finally {
      if (!used && ask.key.history !== undefined && sandbox !== null) ephemeral.unseal(sandbox)
    }
  }

  #told({ row, isNew }: { readonly row: StoredApproval; readonly isNew: boolean }, caller: AnyCaller): void {
    const { audit, news } = this.#world
    const { tenant, agent, sandbox, requester, hash, decision, summary } = row
    const payload = { requestId: caller.requestId, approval: row.id, hash, for: row.point, summary, joined: !isNew }
    audit.note({
      tenant,
      agent,
      sandbox,
      actor: requester,
      point: 'approval.ask',
      status: 'done',
      decision,
      payload,
    })
    if (isNew) news.publish(row)
  }

  /** Who waits holds a connection and its bytes: past a bound nobody else does. */
  async #waitInLine(row: StoredApproval, caller: AnyCaller): Promise<'again'> {
    const { asked, approvalWait } = caller
    const bytes = asked?.heldBytes?.() ?? 0
    const inside = isInside(caller) ? 1 : 0
    const isFull = this.#waiting >= WAITING || this.#waitingInside + inside > WAITING_INSIDE
    if (!approvalWait || isFull || this.#waitingBytes + bytes > WAITING_BYTES) throw required(row)
    this.#waiting += 1
    this.#waitingInside += inside
    this.#waitingBytes += bytes
    try {
      return await this.#wait(row, approvalWait)
    } finally {
      this.#waiting -= 1
      this.#waitingInside -= inside
      this.#waitingBytes -= bytes
    }
  }

  /** Until it is not pending any more, for as long as the caller wants to wait. */
  async #wait(asked: StoredApproval, wait: ApprovalWait): Promise<'again'> {
    const { store, clock, news } = this.#world
    const wake = new Wake(wait.signal)
    const end = news.subscribe(({ id }) => id === asked.id && wake.now())
    try {
      for (;;) {
        const row = await store.query((db) => findApproval(db, asked.id))
        const now = clock.now()
        if (!row || row.state === 'expired' || (row.state === 'pending' && row.expiresAt <= now)) throw expired(asked)
        if (row.state !== 'pending') return 'again'
        const leftMs = Math.min(wait.until, row.expiresAt) - now
        if (wait.until <= now) throw required(asked)
        await wake.after(Math.min(leftMs, LOOK_MS))
      }
    } finally {
      end()
    }
  }
}

/** Sleeps that somebody may end early. Throws when the signal aborts. */
class Wake {
  readonly #signal: AbortSignal
  #isDue = false
  #end: (() => void) | undefined

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  now(): void {
    this.#isDue = true
    this.#end?.()
  }

  async after(ms: number): Promise<void> {
    this.#signal.throwIfAborted()
    if (!this.#isDue)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => this.#end?.(), ms)
        this.#end = () => {
          clearTimeout(timer)
          this.#signal.removeEventListener('abort', this.#abort)
          resolve()
        }
        this.#signal.addEventListener('abort', this.#abort, { once: true })
      })
    this.#end = undefined
    this.#isDue = false
    this.#signal.throwIfAborted()
  }

  readonly #abort = (): void => this.#end?.()
}

/** Preconditions: in a transaction. Undefined when somebody else took it. */
async function take(db: Queries, row: StoredApproval, { use, fresh }: Ask): Promise<StoredApproval | undefined> {
  const now = fresh.createdAt
  const move = { id: row.id, from: 'approved', goodAt: now } as const
  if (isWide(row)) return moveApproval(db, move, { state: 'approved', usedAt: now })
  const used = await moveApproval(db, move, { state: 'used', usedAt: now, usedBy: use, changedAt: now })
  if (used) return used
  const there = await findApproval(db, row.id)
  return there?.usedBy === use ? there : undefined
}

function useRecord(row: StoredApproval, { principal, requestId }: AnyCaller): Omit<NewRecord, 'status'> {
  const { tenant, agent, sandbox, hash, scope, answeredBy } = row
  const payload = { requestId, approval: row.id, hash, scope, answeredBy }
  return { tenant, agent, sandbox, actor: principal.actor, point: 'approval.use', payload }
}

/** The scope `sandbox` is of that one, also where another has the same history. */
function isFor({ scope, sandbox }: StoredApproval, fresh: FullApproval): boolean {
  return scope !== 'sandbox' || sandbox === fresh.sandbox
}

function isInside({ principal }: AnyCaller): boolean {
  return principal.role === 'sandbox'
}

function isWide({ scope }: StoredApproval): boolean {
  return scope !== 'once'
}

function required({ id, decision, point }: StoredApproval): AirlockError {
  const rule = decision.rules.find(({ effect }) => effect === 'ask')
  const why = rule ? `${rule.reason} (${rule.policy}/${rule.rule})` : 'no policy allows it without.'
  return new AirlockError('approval_required', `A person must approve it: ${why}`, {
    approval: id,
    hint: point === 'model.call' ? hintInside(id) : hintOutside(id),
  })
}

function hintOutside(id: string): string {
  return `Let somebody else answer with "airlock approvals approve ${id}", then ask for exactly the same again.`
}

/** A sandbox of `airlock run` ends with its program, and its asks end with it. */
function hintInside(id: string): string {
  return (
    `While this sandbox lives, let somebody else answer with "airlock approvals approve ${id}", then make the call again. ` +
    'With --scope agent later sandboxes of the agent may make it too. A sandbox of "airlock run" ends with its program: ' +
    'keep one with "airlock create --model NAME", then "airlock exec".'
  )
}

function crowded(): AirlockError {
  const message = 'A person must approve it, and so many asks wait for an answer that no more are taken.'
  return new AirlockError('policy_denied', message)
}

function rejected({ id, answeredBy, note }: StoredApproval): AirlockError {
  const why = note === null ? '' : `: ${note}`
  return new AirlockError('policy_denied', `${answeredBy ?? 'Somebody'} rejected it (${id})${why}`, { approval: id })
}

function expired({ id }: StoredApproval): AirlockError {
  return new AirlockError('policy_denied', `Nobody answered in time (${id}).`, { approval: id })
}
