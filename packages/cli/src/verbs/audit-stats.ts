import { Airlock, type AuditStats } from '@airlock/sdk'
import type { Command } from 'commander'
import { bar } from '../text/bar.ts'
import type { Context } from '../context.ts'
import { type Cell, renderFacts, renderTable } from '../text/table.ts'
import type { Terminal } from '../text/terminal.ts'
import { formatBytes } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const BAR_WIDTH = 24
const DAYS = 14

export function addAuditStats(audit: Command, context: Context): void {
  withJson(
    audit.command('stats').description('Show how much evidence there is, whether it verifies, and what was dropped.'),
  ).action(async (options: JsonOption) => {
    const { terminal } = context
    const stats = await new Airlock({ role: 'admin' }).audit.stats()
    if (options.json === true) return terminal.printJson(stats)
    await terminal.print(describe(terminal, stats))
  })
}

function describe(terminal: Terminal, stats: AuditStats): string {
  const { retention, oldest, newest } = stats
  const { dropped } = retention
  const facts = renderFacts(terminal, [
    ['records', `${stats.records}, ${stats.firstSeq} to ${stats.lastSeq}`],
    ['size', `${formatBytes(stats.bytes)} in ${stats.segments} segments`],
    ['time', oldest === null || newest === null ? '-' : `${oldest} to ${newest}`],
    ['rate', `${stats.perMinute} in the last minute`],
    ['verified', verificationCell(stats.verification)],
    ['kept', `${retention.days} days, ${formatBytes(retention.maxBytes)} on this node`],
    ['dropped', dropped === null ? 'nothing' : `up to ${dropped.seq}, of ${dropped.dropped.newest} and before`],
  ])
  const days = stats.perDay.slice(-DAYS)
  const most = Math.max(1, ...days.map(({ records }) => records))
  const perDay = days.map(({ day, records }) => [
    day,
    String(records),
    { text: bar(records / most, BAR_WIDTH), style: 'cyan' } satisfies Cell,
  ])
  const points = stats.points.map((row) => [
    row.point,
    ...[row.requested, row.done, row.failed, row.denied, row.unknown].map(String),
  ])
  return [
    facts,
    '',
    renderTable(terminal, ['DAY', 'RECORDS', ''], perDay),
    '',
    renderTable(terminal, ['POINT', 'REQUESTED', 'DONE', 'FAILED', 'DENIED', 'UNKNOWN'], points),
  ].join('\n')
}

function verificationCell({ state, verifiedTo, at, brokenAt, reason }: AuditStats['verification']): Cell {
  if (state === 'good') return { text: `good, up to ${verifiedTo}, at ${at ?? '-'}`, style: 'green' }
  if (state === 'pending') return { text: 'nothing is sealed, or not read again yet', style: 'dim' }
  const where = brokenAt === null ? '' : ` at record ${brokenAt}`
  return { text: `BROKEN${where}: ${reason ?? 'no reason'}`, style: 'red' }
}
