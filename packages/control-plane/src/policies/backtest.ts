import type { EvidenceReader } from '@airlock/audit'
import {
  type AuditRecord,
  type Backtest,
  type BacktestBody,
  type Decision,
  EFFECTS,
  type Effect,
  isGoverned,
  type Question,
} from '@airlock/contract'
import { mergeDecisions } from '@airlock/policy'
import { replayed } from './backtest-question.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { doRecorded } from '../evidence/evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { recordRefusal } from '../evidence/refusals.ts'

type Reading = Pick<Context, 'audit' | 'clock' | 'guardian' | 'policies'> & { readonly evidence: EvidenceReader }

const PAGE = 1000
/** Of many records only some are of decisions. */
const MAX_PAGES = 50

interface Replayed {
  readonly record: AuditRecord
  readonly question: Question
  readonly isPartial: boolean
  readonly before: Decision
  readonly after: Decision
}

/**
 * What a draft would have said to what was asked before. Evidence is the source, so what it holds back is not replayed: secrets, and
 * code beyond its beginning. Other sources are not asked again: what they said stands.
 */
export class Backtests {
  readonly #reading: Reading

  constructor(reading: Reading) {
    this.#reading = reading
  }

  async run(caller: Caller, body: BacktestBody): Promise<Backtest> {
    const of = this.#reading
    const { tenant, actor } = caller.principal
    const payload = { requestId: caller.requestId, what: 'backtest', policy: body.document.name }
    const deed = { point: 'audit.read', tenant, agent: null, sandbox: null, actor, payload } as const
    await recordRefusal(of, deed, async () => assertUnbound(caller))
    const decide = of.policies.decideWith(body.document, tenant)
    const passed = await of.guardian.pass(caller, deed)
    return doRecorded(of, passed, async () => {
      const { all, isTruncated } = await replayAll(of, { tenant, body, decide })
      const value = summary(all, { isTruncated, examples: body.examples })
      return { value, payload: { replayed: value.replayed, changed: value.changed } }
    })
  }
}

async function replayAll(
  of: Reading,
  asked: { readonly tenant: string; readonly body: BacktestBody; readonly decide: (question: Question) => Decision },
): Promise<{ readonly all: readonly Replayed[]; readonly isTruncated: boolean }> {
  const { since, until, limit } = asked.body
  const all: Replayed[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const query = { since, until, cursor, limit: PAGE }
    const { records, nextCursor } = await of.evidence.query(asked.tenant, query)
    for (const record of records) {
      const one = replay(record, asked.decide)
      if (!one) continue
      if (all.length >= limit) return { all, isTruncated: true }
      all.push(one)
    }
    if (nextCursor === null) return { all, isTruncated: false }
    cursor = nextCursor
  }
  return { all, isTruncated: true }
}

/** Of each deed one record: that it was asked for and let pass, or that Guardian refused it. */
function replay(record: AuditRecord, decide: (question: Question) => Decision): Replayed | undefined {
  const { decision: before, status, point } = record
  if (!before || !isGoverned(point) || (status !== 'requested' && status !== 'denied')) return undefined
  const { question, others, isPartial } = replayed(record)
  const said = [question, ...others].map(decide)
  return { record, question, isPartial, before, after: [...said, saidByOthers(before)].reduce(mergeDecisions) }
}

/** What no policy of ours said. */
function saidByOthers(before: Decision): Decision {
  const rules = before.rules.filter(({ policy }) => policy === 'opa')
  const effect = strictest(rules.map((rule) => rule.effect))
  return { effect, risk: 'low', rules, conditions: {}, policyVersion: '' }
}

/** What a person allowed was asked about. */
function effectBefore({ effect, rules }: Decision): Effect {
  return rules.some(({ policy }) => policy === 'approval') ? 'ask' : effect
}

function summary(
  all: readonly Replayed[],
  show: { readonly isTruncated: boolean; readonly examples: number },
): Backtest {
  const changed = all.filter(({ before, after }) => effectBefore(before) !== after.effect)
  return {
    replayed: all.length,
    changed: changed.length,
    partial: all.filter(({ isPartial }) => isPartial).length,
    changes: EFFECTS.flatMap((from) =>
      EFFECTS.flatMap((to) => {
        const count = changed.filter(({ before, after }) => effectBefore(before) === from && after.effect === to).length
        return count === 0 ? [] : [{ from, to, count }]
      }),
    ),
    examples: changed.slice(0, show.examples).map(({ record, question, before, after }) => {
      const { seq, ts, actor, point, agent, sandbox } = record
      return { seq, ts, actor, point, agent, sandbox, operation: question.operation, before, after }
    }),
    truncated: show.isTruncated,
  }
}

function strictest(effects: readonly Effect[]): Effect {
  return EFFECTS.findLast((effect) => effects.includes(effect)) ?? 'allow'
}
