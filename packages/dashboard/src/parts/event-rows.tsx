import type { AuditEvent } from '@airlock/sdk/browser'
import { commandLine } from '../text/command-line.ts'
import { clockTime, dateTime } from '../text/format.ts'
import { visibleLine } from '../text/visible.ts'
import { State } from './state.tsx'

/** Records in lines: when, what, how it went, about what. */
export function EventRows({ events }: { readonly events: readonly AuditEvent[] }) {
  return (
    <div class="table">
      <table class="events cards">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Event</th>
            <th scope="col">Status</th>
            <th scope="col">Agent</th>
            <th scope="col">Details</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <tr key={event.seq}>
              <td class="num">
                <time dateTime={event.ts} title={dateTime(event.ts)}>
                  {clockTime(event.ts)}
                </time>
              </td>
              <td>
                <a href={`#/evidence/${event.seq}`}>{event.point}</a>
              </td>
              <td>
                <State word={event.status} />
              </td>
              <td>{event.agent === null ? <span class="faint">–</span> : visibleLine(event.agent)}</td>
              <td class="detail">{detailOf(event)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function detailOf({ error, payload, sandbox }: AuditEvent): string {
  if (error && error.message !== '') return visibleLine(error.message)
  const { argv, path, code } = payload ?? {}
  if (Array.isArray(argv))
    return visibleLine(commandLine(argv.filter((word) => typeof word === 'string'))).slice(0, 200)
  if (typeof code === 'string') return visibleLine(code).slice(0, 200)
  if (typeof path === 'string') return visibleLine(path).slice(0, 200)
  return sandbox ?? ''
}
