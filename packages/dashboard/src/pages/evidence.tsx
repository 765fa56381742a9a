import { useState } from 'preact/hooks'
import { EventRows } from '../parts/event-rows.tsx'
import { Empty, Problem, Typed } from '../parts/notice.tsx'
import { NO_FILTER, type RecordFilter, useRecords } from '../records.ts'

const LIMIT = 200
const STATUSES = ['requested', 'done', 'failed', 'denied', 'unknown'] as const
const FIELDS = [
  ['point', 'Event', 'command.run, sandbox.*'],
  ['agent', 'Agent', 'any'],
  ['sandbox', 'Sandbox', 'sbx_…'],
] as const

export function EvidencePage() {
  const [filter, setFilter] = useState(NO_FILTER)
  const { items, error } = useRecords(filter, LIMIT)
  return (
    <>
      <header class="head">
        <h1>Evidence</h1>
      </header>
      <Filter filter={filter} onChange={setFilter} />
      <Problem error={error} />
      {items?.length === 0 && (
        <Empty title="No record matches.">
          <p>Events are named like these:</p>
          <Typed>command.run, sandbox.*, approval.*</Typed>
        </Empty>
      )}
      {items && items.length > 0 && <EventRows events={items} />}
      <p class="footnote">
        The latest {LIMIT}, newest first, as they happen. What is shown here proves nothing by itself. To verify the
        chain: <Typed>airlock audit export chain.ndjson && airlock audit verify chain.ndjson</Typed>
      </p>
    </>
  )
}

interface FilterProps {
  readonly filter: RecordFilter
  readonly onChange: (filter: RecordFilter) => void
}

function Filter({ filter, onChange }: FilterProps) {
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {FIELDS.map(([name, title, placeholder]) => (
        <label key={name}>
          {title}
          <input
            name={name}
            value={filter[name]}
            placeholder={placeholder}
            spellcheck={false}
            onChange={({ currentTarget }) => onChange({ ...filter, [name]: currentTarget.value.replaceAll(/\s/g, '') })}
          />
        </label>
      ))}
      <label>
        Status
        <select
          value={filter.status}
          onChange={({ currentTarget }) => onChange({ ...filter, status: currentTarget.value })}
        >
          <option value="">any</option>
          {STATUSES.map((status) => (
            <option key={status} value={status}>
              {status}
            </option>
          ))}
        </select>
      </label>
    </form>
  )
}
