import type { Alert, AuditEvent, Sandbox, SandboxPage, TenantMetrics } from '@airlock/sdk/browser'
import { Empty, Problem, Typed } from '../parts/notice.tsx'
import { useNow } from '../parts/now.ts'
import { EventRows } from '../parts/event-rows.tsx'
import { State } from '../parts/state.tsx'
import { NO_FILTER, useRecords } from '../records.ts'
import { useLoaded, useSession } from '../session.ts'
import { away, bytes, percent } from '../text/format.ts'

const PAGE = 200
const RECENT = 12
const isOfSandbox = ({ point }: AuditEvent): boolean => /^(?:sandbox|monitor|kill)\./.test(point)

export function OverviewPage() {
  const { client } = useSession()
  const living = useLoaded(async (signal) => client.sandboxes.list({ limit: PAGE, signal }), {
    by: [],
    on: isOfSandbox,
    everyMs: 30_000,
  })
  const use = useLoaded(async (signal) => client.metrics.all({ signal }), { by: [], on: isOfSandbox, everyMs: 5_000 })
  const asks = useLoaded(async (signal) => client.approvals.list({ limit: 100, signal }), {
    by: [],
    on: ({ point }) => point.startsWith('approval.'),
    everyMs: 30_000,
  })
  const alerts = use.value?.sandboxes.flatMap((one) => one.alerts) ?? []
  const items = living.value?.items
  return (
    <>
      <header class="head">
        <h1>Overview</h1>
        <Health />
      </header>
      <Problem error={living.error ?? use.error ?? asks.error} />
      <section class="tiles" aria-label="Now">
        <SandboxTile page={living.value} />
        <AskTile waiting={asks.value?.items.length} />
        <UseTiles use={use.value} />
      </section>
      {alerts.length > 0 && <Alerts alerts={alerts} />}
      {items?.length === 0 && (
        <Empty title="No sandbox lives now.">
          <p>Start one in a terminal:</p>
          <Typed>airlock run -- python3 -c 'print(6*7)'</Typed>
        </Empty>
      )}
      <Recent />
    </>
  )
}

function SandboxTile({ page }: { readonly page: SandboxPage | undefined }) {
  if (!page) return <Tile title="Sandboxes" value="–" note=" " href="#/sandboxes" />
  const { items, nextCursor } = page
  const value = nextCursor === null ? String(items.length) : `${items.length}+`
  return <Tile title="Sandboxes" value={value} note={states(items)} href="#/sandboxes" />
}

function AskTile({ waiting }: { readonly waiting: number | undefined }) {
  if (waiting === undefined) return <Tile title="Waiting asks" value="–" note=" " href="#/approvals" />
  const note = waiting === 0 ? 'nobody waits for you' : 'a person must answer'
  const tone = waiting === 0 ? undefined : 'warn'
  return <Tile title="Waiting asks" value={String(waiting)} note={note} href="#/approvals" tone={tone} />
}

function UseTiles({ use }: { readonly use: TenantMetrics | undefined }) {
  const alerts = use?.sandboxes.reduce((sum, one) => sum + one.alerts.length, 0)
  const note = alerts ? 'beyond a threshold now' : 'no threshold crossed'
  return (
    <>
      <Tile
        title="Alerts"
        value={alerts === undefined ? '–' : String(alerts)}
        note={note}
        tone={alerts ? 'bad' : undefined}
      />
      <Tile title="Processors" value={percent(use?.total.cpuPercent)} note="100 % is one core" />
      <Tile title="Memory" value={bytes(use?.total.memoryBytes)} note={`${use?.total.pids ?? '–'} processes`} />
    </>
  )
}

interface TileProps {
  readonly title: string
  readonly value: string
  readonly note: string
  readonly href?: string
  readonly tone?: 'warn' | 'bad' | undefined
}

function Tile({ title, value, note, href, tone }: TileProps) {
  const content = (
    <>
      <span>{title}</span>
      <b>{value}</b>
      <small>{note}</small>
    </>
  )
  const look = `tile ${tone ?? ''}`
  return href === undefined ? (
    <div class={look}>{content}</div>
  ) : (
    <a class={look} href={href}>
      {content}
    </a>
  )
}

function Health() {
  const { server } = useSession()
  const { value, error } = useLoaded(async (signal) => server.readiness(signal), { by: [], everyMs: 10_000 })
  if (error) return <State word="server away" tone="bad" />
  if (!value) return <State word="looking" tone="quiet" />
  if (!value.ready) return <State word={`not ready: ${value.warnings.join(' ')}`} tone="bad" />
  if (value.warnings.length > 0) return <State word={value.warnings.join(', ')} tone="warn" />
  return <State word="all processes ready" tone="good" />
}

function Alerts({ alerts }: { readonly alerts: readonly Alert[] }) {
  const now = useNow()
  return (
    <section class="panel" aria-labelledby="alerts">
      <h2 id="alerts">Alerts</h2>
      <ul class="rows">
        {alerts.map((alert) => (
          <li key={`${alert.sandbox} ${alert.resource}`}>
            <State word={alert.level} />
            <a class="mono" href={`#/sandboxes/${alert.sandbox}`}>
              {alert.sandbox}
            </a>
            <span>
              {alert.resource} at {percent(alert.percent)} of its limit
            </span>
            <time class="end" dateTime={alert.since}>
              since {away(alert.since, now)}
            </time>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Recent() {
  const { items, error } = useRecords(NO_FILTER, RECENT)
  return (
    <section class="panel" aria-labelledby="recent">
      <h2 id="recent">
        Recent events <a href="#/evidence">All evidence</a>
      </h2>
      <Problem error={error} />
      {items?.length === 0 && <Empty title="Nothing happened yet." />}
      {items && items.length > 0 && <EventRows events={items} />}
    </section>
  )
}

function states(items: readonly Sandbox[]): string {
  const counts = Object.entries(Object.groupBy(items, ({ data }) => data.state))
  if (counts.length === 0) return 'none lives'
  return counts.map(([state, list]) => `${list.length} ${state}`).join(', ')
}
