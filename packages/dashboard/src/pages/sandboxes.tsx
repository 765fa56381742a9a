import type { Sandbox, SandboxNow, SandboxState } from '@airlock/sdk/browser'
import { useState } from 'preact/hooks'
import { Empty, Problem, Typed } from '../parts/notice.tsx'
import { useNow } from '../parts/now.ts'
import { State } from '../parts/state.tsx'
import { useLoaded, useSession } from '../session.ts'
import { away, bytes, percent } from '../text/format.ts'
import { visibleLine } from '../text/visible.ts'

type Choice = SandboxState | 'all' | 'living'
const CHOICES: readonly Choice[] = ['living', 'all', 'active', 'paused', 'creating', 'stopping', 'stopped', 'error']
const PAGE = 100
const MAX_PAGES = 20

interface Filters {
  readonly state: Choice
  readonly agent: string
  readonly label: string
}

export function SandboxesPage() {
  const { client } = useSession()
  const [filters, setFilters] = useState<Filters>({ state: 'living', agent: '', label: '' })
  const [pages, setPages] = useState(1)
  const { state, agent, label } = filters
  const list = useSandboxes(filters, pages)
  const use = useLoaded(async (signal) => client.metrics.all({ signal }), { by: [], everyMs: 5_000 })
  const nows = new Map(use.value?.sandboxes.map((one) => [one.sandbox, one]))
  const isFiltered = state !== 'living' || agent !== '' || label !== ''
  return (
    <>
      <header class="head">
        <h1>Sandboxes</h1>
      </header>
      <FilterRow filters={filters} onChange={setFilters} />
      <LabelHint label={label} />
      <Problem error={list.error ?? use.error} />
      {list.value && <SandboxTable items={list.value.items} nows={nows} isFiltered={isFiltered} />}
      {list.value?.hasMore === true && pages < MAX_PAGES && (
        <button type="button" onClick={() => setPages(pages + 1)}>
          Show more
        </button>
      )}
    </>
  )
}

function LabelHint({ label }: { readonly label: string }) {
  if (label === '' || parseLabel(label)) return null
  return <p class="why">A label is written key=value; this one filters nothing.</p>
}

function useSandboxes({ state, agent, label }: Filters, pages: number) {
  const { client } = useSession()
  return useLoaded(
    async (signal) => {
      const items: Sandbox[] = []
      let cursor: string | undefined
      for (let page = 0; page < pages; page++) {
        const query = { state: state === 'living' ? undefined : state, agent: agent || undefined, limit: PAGE, cursor }
        const found = await client.sandboxes.list({ ...query, labels: parseLabel(label), signal })
        items.push(...found.items)
        cursor = found.nextCursor ?? undefined
        if (cursor === undefined) break
      }
      return { items, hasMore: cursor !== undefined }
    },
    { by: [state, agent, label, pages], on: ({ point }) => /^(?:sandbox|kill)\./.test(point), everyMs: 30_000 },
  )
}

/** `key=value`; everything else filters nothing yet. */
function parseLabel(text: string): Readonly<Record<string, string>> | undefined {
  const [, key, value] = /^([^=,]+)=([^,]+)$/.exec(text.trim()) ?? []
  return key !== undefined && value !== undefined ? { [key]: value } : undefined
}

function FilterRow({ filters, onChange }: { readonly filters: Filters; readonly onChange: (to: Filters) => void }) {
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <label>
        State
        <select
          value={filters.state}
          onChange={({ currentTarget }) =>
            onChange({ ...filters, state: CHOICES.find((one) => one === currentTarget.value) ?? 'living' })
          }
        >
          {CHOICES.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      </label>
      <label>
        Agent
        <input
          value={filters.agent}
          placeholder="any"
          onChange={({ currentTarget }) => onChange({ ...filters, agent: currentTarget.value.trim() })}
        />
      </label>
      <label>
        Label
        <input
          value={filters.label}
          placeholder="key=value"
          onChange={({ currentTarget }) => onChange({ ...filters, label: currentTarget.value.trim() })}
        />
      </label>
    </form>
  )
}

function NoSandbox({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No sandbox matches.">Change the filters above.</Empty>
  return (
    <Empty title="No sandbox lives now.">
      <p>Make one that stays:</p>
      <Typed>airlock create --name scratch</Typed>
    </Empty>
  )
}

interface TableProps {
  readonly items: readonly Sandbox[]
  readonly nows: ReadonlyMap<string, SandboxNow>
  readonly isFiltered: boolean
}

function SandboxTable({ items, nows, isFiltered }: TableProps) {
  const now = useNow()
  if (items.length === 0) return <NoSandbox isFiltered={isFiltered} />
  return (
    <div class="table">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Sandbox</th>
            <th scope="col">State</th>
            <th scope="col">Agent</th>
            <th scope="col" class="num">
              Processors
            </th>
            <th scope="col" class="num">
              Memory
            </th>
            <th scope="col" class="num">
              Ends
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ data }) => (
            <SandboxRow key={data.id} data={data} use={nows.get(data.id)} now={now} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface RowProps {
  readonly data: Sandbox['data']
  readonly use: SandboxNow | undefined
  readonly now: number
}

function SandboxRow({ data, use, now }: RowProps) {
  const isOver = data.state === 'stopped' || data.state === 'error'
  return (
    <tr>
      <td class="main">
        <a class="title" href={`#/sandboxes/${data.id}`}>
          {data.name === null ? <span class="mono">{data.id}</span> : visibleLine(data.name)}
        </a>
        <Labels labels={data.labels} />
      </td>
      <td>
        <State word={data.state} />
        {use?.alerts.map((alert) => (
          <State key={alert.resource} word={alert.resource} tone={alert.level === 'critical' ? 'bad' : 'warn'} />
        ))}
      </td>
      <td>{visibleLine(data.agent)}</td>
      <td class="num" data-title="CPU">
        {percent(use?.now?.cpuPercent)}
      </td>
      <td class="num" data-title="memory">
        {bytes(use?.now?.memoryBytes)}
      </td>
      <td class="num" data-title={isOver ? undefined : 'ends'}>
        {isOver ? (data.endReason ?? 'ended') : away(data.expiresAt, now)}
      </td>
    </tr>
  )
}

export function Labels({ labels }: { readonly labels: Readonly<Record<string, string>> }) {
  const pairs = Object.entries(labels)
  if (pairs.length === 0) return null
  return (
    <ul class="labels" aria-label="Labels">
      {pairs.map(([key, value]) => (
        <li key={key}>{visibleLine(`${key}=${value}`)}</li>
      ))}
    </ul>
  )
}
