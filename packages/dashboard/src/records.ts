import type { AirlockError, AuditEvent } from '@airlock/sdk/browser'
import { useEffect, useState } from 'preact/hooks'
import { toError, useSession } from './session.ts'

export interface RecordFilter {
  readonly point: string
  readonly status: string
  readonly agent: string
  readonly sandbox: string
}

export const NO_FILTER: RecordFilter = { point: '', status: '', agent: '', sandbox: '' }

/** The page's own reading is among what the server answers, and not shown. */
const READ_FOR_EACH = 5

interface Records {
  /** Newest first; undefined before the first answer. */
  readonly items: readonly AuditEvent[] | undefined
  readonly error: AirlockError | undefined
}

/** The latest records, then each new one from the stream. To ask again would be a record itself, so this asks once. */
export function useRecords(filter: RecordFilter, limit: number): Records {
  const { client, live, onSignedOut } = useSession()
  const [items, setItems] = useState<readonly AuditEvent[]>()
  const [error, setError] = useState<AirlockError>()
  const { point, status, agent, sandbox } = filter
  useEffect(() => {
    const gone = new AbortController()
    const add = (found: readonly AuditEvent[]): void =>
      setItems((before = []) => newest([...found.filter((one) => isShown(one, filter)), ...before], limit))
    setItems(undefined)
    setError(undefined)
    const stop = live.onEvent((event) => add([event]))
    const asked = {
      point: point || undefined,
      status: status || undefined,
      limit: Math.min(1000, limit * READ_FOR_EACH),
    }
    client.eventPage({ ...asked, agent: agent || undefined, sandbox: sandbox || undefined, signal: gone.signal }).then(
      (page) => add(page.items),
      (thrown: unknown) => {
        if (gone.signal.aborted) return
        const known = toError(thrown)
        if (known.code === 'unauthenticated') onSignedOut()
        setError(known)
      },
    )
    return () => {
      gone.abort()
      stop()
    }
  }, [live, point, status, agent, sandbox, limit])
  return { items, error }
}

function newest(all: readonly AuditEvent[], limit: number): readonly AuditEvent[] {
  const bySeq = new Map(all.map((one) => [one.seq, one]))
  return [...bySeq.values()].toSorted((a, b) => b.seq - a.seq).slice(0, limit)
}

/** The server filters what it is asked for; the stream has everything. That the page reads is shown only to who looks for it. */
function isShown(event: AuditEvent, { point, status, agent, sandbox }: RecordFilter): boolean {
  if (point === '' && event.point === 'audit.read') return false
  if (point !== '' && !point.split(',').some((pattern) => matches(pattern, event.point))) return false
  if (status !== '' && !status.split(',').includes(event.status)) return false
  return (agent === '' || event.agent === agent) && (sandbox === '' || event.sandbox === sandbox)
}

function matches(pattern: string, point: string): boolean {
  const [head = '', tail] = pattern.split('*')
  return tail === undefined
    ? pattern === point
    : point.startsWith(head) && point.endsWith(pattern.split('*').at(-1) ?? '')
}
