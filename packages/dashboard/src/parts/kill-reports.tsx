import type { KillReport } from '@airlock/sdk/browser'
import { useDeed, useSession } from '../session.ts'
import { dateTime, duration } from '../text/format.ts'
import { visibleLine } from '../text/visible.ts'
import { Problem } from './notice.tsx'
import { State } from './state.tsx'

interface KillReportsProps {
  readonly title: string
  readonly reports: readonly KillReport[]
  readonly onLifted: () => void
}

/** What was killed, how fast, and what may still live. */
export function KillReports({ title, reports, onLifted }: KillReportsProps) {
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      {reports.map((report) => (
        <Report key={report.id} report={report} onLifted={onLifted} />
      ))}
    </section>
  )
}

function Report({ report, onLifted }: { readonly report: KillReport; readonly onLifted: () => void }) {
  const { sandboxes, unverified, slowestMs } = report
  return (
    <article class="report">
      <header>
        <h3>
          {report.scope} {report.target === null ? '' : <span class="mono">{visibleLine(report.target)}</span>}
        </h3>
        {report.liftedAt === null && <State word="on" tone="bad" />}
        {unverified.length > 0 ? (
          <State word={`${unverified.length} unverified`} tone="bad" />
        ) : (
          <State word="verified" tone="good" />
        )}
        <Lift report={report} onLifted={onLifted} />
      </header>
      <p class="meta">
        <span>{dateTime(report.at)}</span>
        <span class="mono">{visibleLine(report.actor)}</span>
        {report.reason !== '' && <span>{visibleLine(report.reason)}</span>}
        <span>
          {sandboxes.length} ended{slowestMs === null ? '' : `, the slowest in ${duration(slowestMs)}`}
        </span>
        {report.nodesDue.length > 0 && <span>waiting for {visibleLine(report.nodesDue.join(', '))}</span>}
      </p>
      {sandboxes.length > 0 && <Ended sandboxes={sandboxes} />}
    </article>
  )
}

function Ended({ sandboxes }: Pick<KillReport, 'sandboxes'>) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th scope="col">Sandbox</th>
            <th scope="col" class="num">
              Processes
            </th>
            <th scope="col" class="num">
              Frozen
            </th>
            <th scope="col" class="num">
              Gone
            </th>
            <th scope="col">Seen gone</th>
          </tr>
        </thead>
        <tbody>
          {sandboxes.map((one) => (
            <tr key={one.id}>
              <td>
                <a class="mono" href={`#/sandboxes/${one.id}`}>
                  {one.id}
                </a>
              </td>
              <td class="num">{one.processes ?? '–'}</td>
              <td class="num">{duration(one.frozenMs)}</td>
              <td class="num">{duration(one.goneMs)}</td>
              <td>{one.verified ? <State word="yes" tone="good" /> : <State word="no" tone="bad" />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A killswitch of one sandbox lifts itself when that has ended. */
function Lift({ report, onLifted }: { readonly report: KillReport; readonly onLifted: () => void }) {
  const { client, may } = useSession()
  const deed = useDeed()
  const { scope, target, tenant, liftedAt } = report
  if (liftedAt !== null || !may.lift || scope === 'sandbox' || (scope === 'all' && !may.killAll)) return null
  const what = {
    scope,
    ...(target === null ? {} : { target }),
    ...(scope === 'agent' && tenant !== null ? { tenant } : {}),
  }
  return (
    <>
      <button
        type="button"
        disabled={deed.busy}
        onClick={() => void deed.run(async () => client.killswitch.lift(what)).then(onLifted)}
      >
        Lift
      </button>
      <Problem error={deed.error} />
    </>
  )
}
