import type { KillReport, KillScope, Sandbox } from '@airlock/sdk/browser'
import { useState } from 'preact/hooks'
import { whyNot } from '../may.ts'
import { HoldButton } from '../parts/hold-button.tsx'
import { KillReports } from '../parts/kill-reports.tsx'
import { Empty, Problem } from '../parts/notice.tsx'
import { State } from '../parts/state.tsx'
import { useDeed, useLoaded, useSession } from '../session.ts'
import { visibleLine } from '../text/visible.ts'

const LIMIT = 200
const SCOPE_WORDS: Record<KillScope, string> = {
  sandbox: 'One sandbox',
  agent: 'All sandboxes of an agent',
  tenant: 'All sandboxes of this tenant',
  all: 'Everything on every node',
}

export function KillswitchPage() {
  const { client, may, who } = useSession()
  const isOfKills = ({ point }: { readonly point: string }): boolean => /^(?:kill|sandbox)\./.test(point)
  const living = useLoaded(async (signal) => client.sandboxes.list({ limit: LIMIT, signal }), {
    by: [],
    on: isOfKills,
    everyMs: 30_000,
  })
  const kills = useLoaded(async (signal) => client.killswitch.list({ signal }), {
    by: [],
    on: isOfKills,
    everyMs: 10_000,
  })
  const [report, setReport] = useState<KillReport>()
  const others = kills.value?.filter(({ id }) => id !== report?.id) ?? []
  const onLifted = (): void => {
    setReport(undefined)
    kills.reload()
  }
  return (
    <>
      <header class="head">
        <h1>Killswitch</h1>
      </header>
      <p class="lead">
        It ends everything in its scope, verifies that every process is gone, and grants nothing there until it is
        lifted.
      </p>
      <Problem error={living.error ?? kills.error} />
      {may.kill ? (
        <KillForm
          living={living.value?.items ?? []}
          hasMore={typeof living.value?.nextCursor === 'string'}
          onKilled={(done) => (setReport(done), kills.reload(), living.reload())}
        />
      ) : (
        <p class="why">{whyNot(who, 'operator or admin')}</p>
      )}
      {report && <KillReports title="Report" reports={[report]} onLifted={onLifted} />}
      {kills.value?.length === 0 && <Empty title="No killswitch is on." />}
      {others.length > 0 && <KillReports title="On now" reports={others} onLifted={onLifted} />}
    </>
  )
}

interface KillFormProps {
  readonly living: readonly Sandbox[]
  /** More live than are listed. */
  readonly hasMore: boolean
  readonly onKilled: (report: KillReport) => void
}

function KillForm({ living, hasMore, onKilled }: KillFormProps) {
  const { client } = useSession()
  const [scope, setScope] = useState<KillScope>('sandbox')
  const [target, setTarget] = useState('')
  const [reason, setReason] = useState('')
  const deed = useDeed()
  const targets = targetsOf(scope, living)
  const chosen = targets.some(([value]) => value === target) ? target : (targets[0]?.[0] ?? '')
  const hit = living.filter(({ data }) =>
    scope === 'sandbox' ? data.id === chosen : scope !== 'agent' || data.agent === chosen,
  )
  const isNamed = scope === 'sandbox' || scope === 'agent'
  const kill = async (): Promise<void> =>
    deed.run(async () =>
      onKilled(await client.killswitch.on({ scope, ...(isNamed ? { target: chosen } : {}), reason })),
    )
  return (
    <section class="panel kill" aria-label="Turn a killswitch on">
      <div class="filters">
        <ScopeChoice scope={scope} onChange={setScope} />
        {isNamed && (
          <label>
            {scope === 'agent' ? 'Agent' : 'Sandbox'}
            <select value={chosen} onChange={({ currentTarget }) => setTarget(currentTarget.value)}>
              {targets.map(([value, title]) => (
                <option key={value} value={value}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="wide">
          Reason
          <input
            value={reason}
            maxLength={500}
            placeholder="for the record"
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
        </label>
      </div>
      <Hit hit={hit} scope={scope} hasMore={hasMore && scope !== 'sandbox'} />
      <HoldButton disabled={deed.busy || (isNamed && chosen === '')} onHeld={() => void kill()}>
        {deed.busy ? 'Killing…' : 'Hold to kill'}
      </HoldButton>
      <Problem error={deed.error} />
    </section>
  )
}

interface ScopeChoiceProps {
  readonly scope: KillScope
  readonly onChange: (scope: KillScope) => void
}

function ScopeChoice({ scope, onChange }: ScopeChoiceProps) {
  const { may } = useSession()
  const scopes: readonly KillScope[] = ['sandbox', 'agent', 'tenant', ...(may.killAll ? (['all'] as const) : [])]
  return (
    <label>
      Scope
      <select
        value={scope}
        onChange={({ currentTarget }) => onChange(scopes.find((one) => one === currentTarget.value) ?? 'sandbox')}
      >
        {scopes.map((one) => (
          <option key={one} value={one}>
            {SCOPE_WORDS[one]}
          </option>
        ))}
      </select>
    </label>
  )
}

interface HitProps {
  readonly hit: readonly Sandbox[]
  readonly scope: KillScope
  readonly hasMore: boolean
}

function Hit({ hit, scope, hasMore }: HitProps) {
  const beyond =
    scope === 'all' ? ' It also ends sandboxes of other tenants and nodes, which this page does not show.' : ''
  const unseen = hasMore ? ` Only the latest ${LIMIT} that live were counted.` : ''
  return (
    <div class="hit">
      <p>
        <b class="num">{hasMore ? `${hit.length}+` : hit.length}</b>{' '}
        {hit.length === 1 ? 'sandbox lives' : 'sandboxes live'} in this scope.
        {unseen}
        {beyond}
      </p>
      <ul>
        {hit.slice(0, 12).map(({ data }) => (
          <li key={data.id}>
            {data.name === null ? <span class="mono">{data.id}</span> : <span>{visibleLine(data.name)}</span>}{' '}
            <State word={data.state} />
          </li>
        ))}
        {hit.length > 12 && <li>and {hit.length - 12} more</li>}
      </ul>
    </div>
  )
}

function targetsOf(scope: KillScope, living: readonly Sandbox[]): readonly (readonly [string, string])[] {
  if (scope === 'sandbox')
    return living.map(({ data }) => [data.id, visibleLine(data.name === null ? data.id : `${data.name} · ${data.id}`)])
  return [...new Set(living.map(({ data }) => data.agent))].map((agent) => [agent, visibleLine(agent)])
}
