import { type AuditSink, redact } from '@airlock/audit'
import {
  AirlockError,
  type AskingRole,
  type Decision,
  type Evaluation,
  type GuardianStatus,
  isAirlockError,
  type Operation,
  type Point,
  type Question,
  toAirlockError,
} from '@airlock/contract'
import { mergeDecisions } from '@airlock/policy'
import type { AnyCaller } from '../app/caller.ts'
import { covers } from '../approvals/cover.ts'
import type { Deed } from './deed.ts'
import type { KillList } from '../kills/kill-list.ts'
import type { PolicyBook } from './policy-book.ts'
import type { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'

/** Something that has a say beside the policies. What it throws stops the operation. */
export interface Source {
  readonly name: string
  decide(question: Question): Promise<Decision>
  /** How it answered the last time; null before it was asked. */
  health(): { readonly isHealthy: boolean | null; readonly problem: string | null }
}

/** What becomes of an *ask*. */
export interface Approvals {
  /**
   * Answers a decision that allows, which names the approval among its rules; `again` when the answer was waited for, so that what
   * holds now is looked at anew; or throws `approval_required`, or `policy_denied` when a person said no. That it was refused is
   * recorded by Guardian.
   */
  settle(caller: AnyCaller, question: Question, decision: Decision): Promise<Decision | 'again'>
}

/** Something that will be asked about when its time comes. */
export interface Foreseen {
  readonly point: Point
  readonly operation: Operation
}

/** How often what holds is looked at anew after somebody was waited for. */
const MAX_LOOKS = 3

/** Evidence says in which role it was asked for. */
interface Known extends Deed {
  readonly role: AskingRole
}

interface Parts {
  readonly book: Pick<PolicyBook, 'decide'>
  readonly sources: readonly Source[]
  readonly approvals: Approvals
  readonly audit: Pick<AuditSink, 'note'>
  readonly kills: Pick<KillList, 'assertAlive'>
  readonly ephemeral: Pick<EphemeralSandboxes, 'has' | 'historyOf'>
}

/** Nobody else has it, so nobody else can make a governed deed. */
const PASSED: unique symbol = Symbol('passed')

/**
 * A deed that Guardian let pass, with its decision. Guardian alone makes one, and what is governed is neither recorded as
 * requested nor done without one.
 */
export interface Governed extends Known {
  readonly decision: Decision
  readonly [PASSED]: true
}

/** With what was learned since, such as the name of what is made; the decision stays. */
export function saying(deed: Governed, payload: Deed['payload'], sandbox = deed.sandbox): Governed {
  return { ...deed, sandbox, payload: { ...deed.payload, ...payload } }
}

/**
 * Asked before every effect of a caller: after it is known who asks and that what it is about is there and theirs, and before
 * anything is written or reserved. The strictest of all that have a say holds.
 */
export class Guardian {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Resolves when it may be done, and throws `policy_denied` or what the approvals say when not. `about` is the operation as a
   * rule sees it, with those it brings along, such as the mounts of a sandbox; the first one is what a person is asked about.
   * Without it a rule sees what the record will say.
   */
  async pass(
    caller: AnyCaller,
    deed: Deed,
    about: Operation | readonly [Operation, ...Operation[]] = otherOf(deed),
  ): Promise<Governed> {
    const [first, ...others] = 'kind' in about ? [about] : about
    const question = this.#questionOf(caller, deed, first)
    const questions = [question, ...others.map((other) => this.#questionOf(caller, deed, other))]
    const known = { ...deed, role: caller.principal.role }
    for (let look = 1; ; look++) {
      if (look > 1) await caller.assertGood?.()
      this.#assertAlive(known)
      const decision = await this.#decide(questions)
      if (decision.effect === 'deny') throw this.#refuse(known, decision, denial(decision, first))
      if (decision.effect === 'allow') return { ...known, decision, [PASSED]: true }
      const settled = await this.#settle({ caller, deed: known }, question, decision)
      // What was waited for may be long ago: a policy may deny it by now.
      if (settled !== 'again') return { ...known, decision: settled, [PASSED]: true }
      if (look >= MAX_LOOKS) throw this.#refuse(known, decision, new AirlockError('approval_required'))
    }
  }

  /**
   * For work that begins later and is asked about then: throws `policy_denied` for what is denied already now. What a rule asks about
   * is not asked yet.
   */
  async foresee(caller: AnyCaller, deed: Deed, later: readonly Foreseen[]): Promise<void> {
    const questions = later.map(({ point, operation }) => this.#questionOf(caller, { ...deed, point }, operation))
    const decision = await this.#decide(questions)
    if (decision.effect !== 'deny') return
    const about = later[0]?.operation ?? otherOf(deed)
    throw this.#refuse({ ...deed, role: caller.principal.role }, decision, denial(decision, about))
  }

  /**
   * Throws unless the parts of a deed that passed, such as the entries of an archive, may each be done as well. Nobody is asked
   * to approve a part: a rule that asks holds when it is one that was approved for the whole.
   */
  async passParts(caller: AnyCaller, deed: Governed, operations: readonly Operation[]): Promise<void> {
    this.#assertAlive(deed)
    const questions = operations.map((operation) => this.#questionOf(caller, deed, operation))
    if (questions.length === 0) return
    const decision = await this.#decide(questions)
    if (decision.effect === 'deny') throw this.#refuse(deed, decision, denial(decision, operations[0] ?? otherOf(deed)))
    if (decision.effect === 'allow') return
    const open = decision.rules.find(({ effect }) => effect === 'ask')
    if (open && covers(deed.decision, decision)) return
    const why = open ? `The rule ${open.policy}/${open.rule} asks a person first` : 'No policy allows it'
    const message = `${why} for a part of it: do that part by itself.`
    throw this.#refuse(deed, decision, new AirlockError('approval_required', message))
  }

  sources(): GuardianStatus['sources'] {
    return this.#parts.sources.map((source) => ({ name: source.name, ...source.health() }))
  }

  async #settle(
    of: { readonly caller: AnyCaller; readonly deed: Known },
    question: Question,
    decision: Decision,
  ): Promise<Decision | 'again'> {
    try {
      return await this.#parts.approvals.settle(of.caller, question, decision)
    } catch (error) {
      throw isAirlockError(error) ? this.#refuse(of.deed, decision, error) : error
    }
  }

  /** Whatever the policies say, and from memory: what is killed is granted nothing but a look at its evidence. */
  #assertAlive(deed: Known): void {
    if (deed.point === 'audit.read') return
    try {
      this.#parts.kills.assertAlive(deed)
    } catch (error) {
      const { code, message } = toAirlockError(error)
      this.#parts.audit.note({ ...deed, status: 'denied', error: { code, message } })
      throw error
    }
  }

  /** What each that has a say would answer, and what would hold. Nothing happens, and nobody is asked to approve. */
  async explain(of: Question): Promise<Omit<Evaluation, 'question'>> {
    const { book, sources, ephemeral } = this.#parts
    const question = ephemeral.has(of.sandbox) ? { ...of, ephemeral: true } : of
    const said = [
      { name: 'policies', decision: book.decide(question) },
      ...(await Promise.all(sources.map(async (one) => ({ name: one.name, decision: await one.decide(question) })))),
    ]
    return { decision: mergeAll(said.map(({ decision }) => decision)), sources: said }
  }

  #questionOf({ principal }: AnyCaller, deed: Deed, operation: Operation): Question {
    const { point, tenant, actor, agent, sandbox } = deed
    const ephemeral = this.#parts.ephemeral.has(sandbox) ? { ephemeral: true } : {}
    return { point, tenant, actor, role: principal.role, agent, sandbox, ...ephemeral, operation }
  }

  /** What is denied by the policies is not taken elsewhere. */
  async #decide(questions: readonly Question[]): Promise<Decision> {
    const { book, sources } = this.#parts
    const own = mergeAll(questions.map((question) => book.decide(question)))
    if (sources.length === 0 || own.effect === 'deny') return own
    const asked = sources.flatMap((source) => questions.map(async (question) => source.decide(question)))
    return mergeAll([own, ...(await Promise.all(asked))])
  }

  /** A refusal never waits for its record. */
  #refuse(deed: Known, decision: Decision, error: AirlockError): AirlockError {
    const { code, message } = error
    this.#parts.audit.note({ ...deed, decision, status: 'denied', error: { code, message } })
    return error
  }
}

function mergeAll(decisions: readonly Decision[]): Decision {
  return decisions.reduce(mergeDecisions)
}

function otherOf({ payload }: Deed): Operation {
  return { kind: 'other', payload: redact(payload) }
}

/** Names the rule, for whoever wants to change it or to go another way. */
function denial(decision: Decision, asked: Operation): AirlockError {
  const rule = decision.rules.find(({ effect }) => effect === 'deny')
  if (!rule && asked.kind === 'network') {
    const place = `${asked.host.includes(':') ? `[${asked.host}]` : asked.host}:${asked.port}`
    const hint = `Ask an admin to run: airlock egress allow ${place}`
    return new AirlockError('policy_denied', `No rule allows ${place}.`, { hint })
  }
  if (!rule && asked.kind === 'tool') {
    const hint = `Ask an admin to run: airlock tool allow ${asked.tool}`
    return new AirlockError('policy_denied', `No rule allows the tool ${asked.tool}.`, { hint })
  }
  if (!rule) return new AirlockError('policy_denied', 'No policy allows it, and what none allows is denied here.')
  return new AirlockError('policy_denied', `The rule ${rule.policy}/${rule.rule} denies it: ${rule.reason}`)
}
