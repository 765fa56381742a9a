import type { Sandbox } from '@airlock/sdk/browser'
import { useState } from 'preact/hooks'
import { Commands } from '../parts/commands.tsx'
import { Problem } from '../parts/notice.tsx'
import { useNow } from '../parts/now.ts'
import { State } from '../parts/state.tsx'
import { Use } from '../parts/use.tsx'
import { type Deed, useDeed, useLoaded, useSession } from '../session.ts'
import { away, bytes, dateTime, duration } from '../text/format.ts'
import { visibleLine } from '../text/visible.ts'
import { whyNot } from '../may.ts'
import { Labels } from './sandboxes.tsx'

export function SandboxPage({ id }: { readonly id: string }) {
  const { client } = useSession()
  const { value, error, reload } = useLoaded(async (signal) => client.sandboxes.get(id, signal), {
    by: [id],
    on: ({ sandbox, point }) => sandbox === id && /^(?:sandbox|kill)\./.test(point),
    everyMs: 30_000,
  })
  const deed = useDeed()
  if (!value) return <Problem error={error} />
  const { data } = value
  const isOver = data.state === 'stopped' || data.state === 'error'
  return (
    <>
      <header class="head">
        <div>
          <p class="crumb">
            <a href="#/sandboxes">Sandboxes</a>
          </p>
          <h1>
            {data.name === null ? <span class="mono">{data.id}</span> : visibleLine(data.name)}{' '}
            <State word={data.state} />
          </h1>
          <Labels labels={data.labels} />
        </div>
        {!isOver && <Actions sandbox={value} deed={deed} onDone={reload} />}
      </header>
      <Problem error={deed.error ?? error} />
      <Facts sandbox={value} />
      {!isOver && <Use id={id} />}
      <Commands sandbox={value} isOver={isOver} />
    </>
  )
}

interface ActionsProps {
  readonly sandbox: Sandbox
  readonly deed: Deed
  readonly onDone: () => void
}

function Actions({ sandbox, deed, onDone }: ActionsProps) {
  const { may, who } = useSession()
  const [isSure, setSure] = useState(false)
  const why = may.operate ? undefined : whyNot(who, 'developer, operator or admin')
  const run = (work: () => Promise<unknown>) => (): void => void deed.run(work).then(onDone)
  const { state } = sandbox.data
  const off = deed.busy || !may.operate
  return (
    <div class="actions" title={why}>
      {state === 'paused' ? (
        <button type="button" disabled={off} onClick={run(async () => sandbox.resume())}>
          Resume
        </button>
      ) : (
        <button type="button" disabled={off || state !== 'active'} onClick={run(async () => sandbox.pause())}>
          Pause
        </button>
      )}
      <button type="button" disabled={off || state !== 'active'} onClick={run(async () => sandbox.extend())}>
        Extend
      </button>
      {isSure ? (
        <>
          <button type="button" class="danger" disabled={off} onClick={run(async () => sandbox.terminate())}>
            Terminate now
          </button>
          <button type="button" class="quiet" onClick={() => setSure(false)}>
            Keep it
          </button>
        </>
      ) : (
        <button type="button" disabled={off} onClick={() => setSure(true)}>
          Terminate
        </button>
      )}
      {why !== undefined && <p class="why">{why}</p>}
    </div>
  )
}

function Facts({ sandbox: { data } }: { readonly sandbox: Sandbox }) {
  const now = useNow()
  const { limits, isolation } = data
  const ends =
    data.endedAt === null ? away(data.expiresAt, now) : `${data.endReason ?? 'ended'}, ${dateTime(data.endedAt)}`
  const facts: readonly (readonly [string, string])[] = [
    ['Id', data.id],
    ['Agent', visibleLine(data.agent)],
    ['Template and node', visibleLine(`${data.template}, on ${data.node}`)],
    ['Created', dateTime(data.createdAt)],
    [data.endedAt === null ? 'Ends' : 'Ended', ends],
    ['Idle after', `${duration(data.idleMs)}, then ${data.onIdle === 'pause' ? 'paused' : 'ended'}`],
    [
      'Limits',
      `${limits.cpus} CPU, ${bytes(limits.memoryBytes)}, ${limits.pids} processes, ${bytes(limits.diskBytes)} disk`,
    ],
    ['Isolation', isolation ? `${isolation.tier}, ${isolation.runtime}, network ${isolation.network}` : '–'],
    ['Doors', data.doors.join(', ') || 'none'],
  ]
  return (
    <dl class="facts panel">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={name === 'Id' ? 'mono' : undefined}>{value}</dd>
        </div>
      ))}
      {data.error && (
        <div>
          <dt>Error</dt>
          <dd>{visibleLine(data.error.message)}</dd>
        </div>
      )}
    </dl>
  )
}
