import type { AuditEvent } from '@airlock/sdk'
import { sanitizeLine } from './sanitize.ts'
import type { Style, Terminal } from './terminal.ts'

/** How much of what somebody else wrote a line shows. */
const MAX_DETAIL = 160
const MIN_DETAIL = 20

/** What says most comes first. */
const FIRST = [
  'reason',
  'argv',
  'shell',
  'path',
  'exitCode',
  'cause',
  'timedOut',
  'model',
  'microDollars',
  'usage',
] as const

const STYLES: Readonly<Record<AuditEvent['status'], Style>> = {
  requested: 'dim',
  done: 'green',
  failed: 'red',
  denied: 'magenta',
  unknown: 'yellow',
}

/** One event on one line: when, how, what, about whom, who, and why. It is as long as the line is. */
export function eventLine(terminal: Terminal, event: AuditEvent): string {
  const { ts, status, point, actor } = event
  const about = [event.agent, event.sandbox].filter((name) => name !== null).join(' ')
  const cells: readonly (readonly [Style, string])[] = [
    ['dim', timeOf(event.happenedAt ?? ts)],
    [STYLES[status], status.padEnd(9)],
    ['bold', point.padEnd(17)],
    ['reset', sanitizeLine(about || '-')],
    ['dim', sanitizeLine(actor)],
  ]
  const used = cells.reduce((sum, [, text]) => sum + text.length + 2, 0)
  const room = Math.max(MIN_DETAIL, Math.min(MAX_DETAIL, terminal.width - used))
  const detail = sanitizeLine(detailOf(event)).slice(0, room)
  const last: readonly (readonly [Style, string])[] = detail === '' ? [] : [[event.error ? 'red' : 'dim', detail]]
  return [...cells, ...last].map(([style, text]) => terminal.style(style, text)).join('  ')
}

/** What went wrong; else what it was. */
function detailOf({ error, payload, durationMs }: AuditEvent): string {
  const took = durationMs === undefined ? [] : [`${Math.round(durationMs)} ms`]
  if (error) return [...took, error.message === '' ? error.code : `${error.code}: ${error.message}`].join('  ')
  const all = payload ?? {}
  const names = new Set([...FIRST.filter((name) => name in all), ...Object.keys(all)])
  const said = [...names]
    .map((name) => [name, all[name]] as const)
    .filter(([name, value]) => name !== 'requestId' && value !== null)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [...took, ...said].join('  ')
}

/** By the clock of this machine: it is for people who look at it. */
function timeOf(ts: string): string {
  const at = new Date(ts)
  return `${at.toLocaleTimeString('en-GB')}.${String(at.getMilliseconds()).padStart(3, '0')}`
}
