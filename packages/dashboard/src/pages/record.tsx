import type { AuditEvent } from '@airlock/sdk/browser'
import { Empty, Problem } from '../parts/notice.tsx'
import { State } from '../parts/state.tsx'
import { useLoaded, useSession } from '../session.ts'
import { dateTime, duration } from '../text/format.ts'
import { visible, visibleLine } from '../text/visible.ts'

export function RecordPage({ seq }: { readonly seq: number }) {
  const { client } = useSession()
  const { value, error } = useLoaded(
    async (signal) => {
      const { items } = await client.eventPage({ after: Math.max(0, seq - 1), limit: 1, signal })
      return items.find((one) => one.seq === seq) ?? 'nothing'
    },
    { by: [seq] },
  )
  return (
    <>
      <header class="head">
        <div>
          <p class="crumb">
            <a href="#/evidence">Evidence</a>
          </p>
          <h1>
            Record <span class="num">{seq}</span>
          </h1>
        </div>
      </header>
      <Problem error={error} />
      {value === 'nothing' && <Empty title="There is no such record for you, or it was dropped." />}
      {value !== undefined && value !== 'nothing' && <Fields event={value} />}
    </>
  )
}

function Fields({ event }: { readonly event: AuditEvent }) {
  const { decision } = event
  const facts: readonly (readonly [string, string])[] = [
    ['Event', event.point],
    ['When', `${dateTime(event.ts)} (${event.ts})`],
    ['Actor', event.actor],
    ['Agent', event.agent ?? '–'],
    ['Took', duration(event.durationMs)],
    ['Decision', decision ? `${decision.effect}, ${decision.risk} risk, by ${decision.policyVersion}` : '–'],
  ]
  return (
    <>
      <dl class="facts panel">
        <div>
          <dt>Status</dt>
          <dd>
            <State word={event.status} />
          </dd>
        </div>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{visibleLine(value)}</dd>
          </div>
        ))}
        {event.sandbox !== null && (
          <div>
            <dt>Sandbox</dt>
            <dd>
              <a class="mono" href={`#/sandboxes/${event.sandbox}`}>
                {event.sandbox}
              </a>
            </dd>
          </div>
        )}
      </dl>
      <section class="panel" aria-labelledby="payload">
        <h2 id="payload">Whole record</h2>
        <pre class="asked">{visible(JSON.stringify(event, null, 2))}</pre>
      </section>
    </>
  )
}
