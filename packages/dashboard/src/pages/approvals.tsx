import type { Approval, ApprovalDetail, ApprovalScope } from '@airlock/sdk/browser'
import { useState } from 'preact/hooks'
import { whyNot } from '../may.ts'
import { Empty, Problem, Typed } from '../parts/notice.tsx'
import { useNow } from '../parts/now.ts'
import { State } from '../parts/state.tsx'
import { useDeed, useLoaded, useSession } from '../session.ts'
import { commandLine } from '../text/command-line.ts'
import { away, dateTime } from '../text/format.ts'
import { visible, visibleLine } from '../text/visible.ts'

const ENDED = 20

export function ApprovalsPage() {
  const { client } = useSession()
  const { value, error, reload } = useLoaded(
    async (signal) => {
      const { items } = await client.approvals.list({ state: 'all', limit: 100, signal })
      const pending = items.filter(({ state }) => state === 'pending')
      const asks = await Promise.all(pending.map(async ({ id }) => client.approvals.get(id, signal)))
      return { asks, others: items.filter(({ state }) => state !== 'pending').slice(0, ENDED) }
    },
    { by: [], on: ({ point }) => point.startsWith('approval.'), everyMs: 15_000 },
  )
  return (
    <>
      <header class="head">
        <h1>Approvals</h1>
      </header>
      <Problem error={error} />
      {value?.asks.length === 0 && (
        <Empty title="Nobody waits for an answer.">
          <p>An ask comes when a rule says so. To see which rules ask:</p>
          <Typed>airlock guardian rules</Typed>
        </Empty>
      )}
      {value?.asks.map((ask) => (
        <Ask key={ask.id} ask={ask} onAnswered={reload} />
      ))}
      {value && value.others.length > 0 && <Answered approvals={value.others} />}
    </>
  )
}

interface AskProps {
  readonly ask: ApprovalDetail
  readonly onAnswered: () => void
}

function Ask({ ask, onAnswered }: AskProps) {
  const now = useNow()
  const { decision } = ask
  return (
    <article class="ask panel" aria-labelledby={ask.id}>
      <header>
        <h2 id={ask.id}>
          {ask.agent === null ? 'Somebody' : visibleLine(ask.agent)} wants: {ask.point}
        </h2>
        <State
          word={`${decision.risk} risk`}
          tone={decision.risk === 'low' ? 'quiet' : decision.risk === 'medium' ? 'warn' : 'bad'}
        />
      </header>
      <pre class="asked">{visible(askedFor(ask))}</pre>
      <ul class="reasons">
        {decision.rules.map((rule) => (
          <li key={`${rule.policy} ${rule.rule}`}>
            {visibleLine(rule.reason)} <small>{visibleLine(`${rule.policy}: ${rule.rule}`)}</small>
          </li>
        ))}
      </ul>
      <p class="meta">
        <span class="mono">{visibleLine(ask.requester)}</span>
        {ask.sandbox !== null && (
          <a class="mono" href={`#/sandboxes/${ask.sandbox}`}>
            {ask.sandbox}
          </a>
        )}
        <span>asked {away(ask.createdAt, now)}</span>
        <span>ends {away(ask.expiresAt, now)}</span>
      </p>
      <Answer ask={ask} onAnswered={onAnswered} />
    </article>
  )
}

const SCOPES: readonly (readonly [ApprovalScope, string])[] = [
  ['once', 'Once'],
  ['sandbox', 'Again and again in this sandbox'],
  ['agent', 'Again and again by this agent'],
  ['until', 'Again and again for one hour'],
]
const HOUR_MS = 3_600_000

function Answer({ ask, onAnswered }: AskProps) {
  const { client, may, who } = useSession()
  const [scope, setScope] = useState<ApprovalScope>('once')
  const deed = useDeed()
  const why = reasonNotTo(ask)
  const approve = async (): Promise<unknown> => {
    const until = scope === 'until' ? { until: new Date(Date.now() + HOUR_MS).toISOString() } : {}
    return client.approvals.approve(ask.id, { scope, ...until })
  }
  const run = (work: () => Promise<unknown>) => (): void => void deed.run(work).then(onAnswered)
  if (!may.answer || ask.requester === who.actor)
    return (
      <p class="why">
        {may.answer ? 'You asked for this yourself; somebody else must answer.' : whyNot(who, 'operator or admin')}
      </p>
    )
  return (
    <>
      <div class="answer">
        <label>
          Good for
          <select
            value={scope}
            onChange={({ currentTarget }) =>
              setScope(SCOPES.find(([one]) => one === currentTarget.value)?.[0] ?? 'once')
            }
          >
            {SCOPES.filter(([one]) => one !== 'sandbox' || ask.sandbox !== null).map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="primary" disabled={deed.busy || why !== undefined} onClick={run(approve)}>
          Approve
        </button>
        <button type="button" disabled={deed.busy} onClick={run(async () => client.approvals.reject(ask.id))}>
          Reject
        </button>
      </div>
      {why !== undefined && <p class="why">{why}</p>}
      <Problem error={deed.error} />
    </>
  )

  function reasonNotTo({ decision }: Approval): string | undefined {
    return decision.risk === 'critical' && who.role !== 'admin' ? 'What is critical, admins alone approve.' : undefined
  }
}

/** All of it, as it will run. What is not words is JSON. */
function askedFor({ question, summary }: ApprovalDetail): string {
  const { operation } = question
  if (operation.kind === 'command') return commandLine(operation.argv)
  if (operation.kind === 'code') return operation.code
  return `${summary}\n${JSON.stringify(operation, null, 2)}`
}

function Answered({ approvals }: { readonly approvals: readonly Approval[] }) {
  return (
    <section class="panel" aria-labelledby="answered">
      <h2 id="answered">Answered</h2>
      <div class="table">
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">What</th>
              <th scope="col">Agent</th>
              <th scope="col">By</th>
              <th scope="col" class="num">
                When
              </th>
            </tr>
          </thead>
          <tbody>
            {approvals.map((approval) => (
              <tr key={approval.id}>
                <td>
                  <State word={approval.state} />
                </td>
                <td class="detail">{visibleLine(approval.summary)}</td>
                <td>{approval.agent === null ? '–' : visibleLine(approval.agent)}</td>
                <td class="mono">{approval.answeredBy === null ? '–' : visibleLine(approval.answeredBy)}</td>
                <td class="num">{dateTime(approval.answeredAt ?? approval.createdAt)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
