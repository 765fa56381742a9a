import { type AgentSummary, Airlock } from '@airlock/sdk'
import type { Command } from 'commander'
import { bar } from '../text/bar.ts'
import type { Context } from '../context.ts'
import { type Cell, renderTable, type Row } from '../text/table.ts'
import type { Terminal } from '../text/terminal.ts'
import { formatBytes, parseNumber } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const BAR_WIDTH = 24

export function addAgentSummary(agent: Command, context: Context): void {
  withJson(agent.command('summary').description('Show what an agent did in the last days, on the node that is asked.'))
    .argument('<id>', 'its name')
    .option('--days <number>', 'how many days, in UTC, today included', parseNumber, 7)
    .action(async (id: string, options: JsonOption & { readonly days: number }) => {
      const { terminal } = context
      const summary = await new Airlock().agents.summary(id, { days: options.days })
      if (options.json === true) return terminal.printJson(summary)
      await terminal.print(describe(terminal, summary))
    })
}

function describe(terminal: Terminal, summary: AgentSummary): string {
  const { agent, from, to, sandboxes, total, complete } = summary
  const facts = [
    `${terminal.style('bold', agent)}, ${from} to ${to}: sandboxes ${sandboxes}, operations ended ${total.done + total.failed + total.unknown}`,
    `failed ${percent(total.failureRate)}, denied ${percent(total.denialRate)}`,
  ].join(', ')
  const gone = complete ? [] : [terminal.style('yellow', 'Retention dropped records of these days: there was more.')]
  const head = ['OPERATION', 'DONE', 'FAILED', 'DENIED', 'UNKNOWN', 'P50 MS', 'P95 MS', 'CPU MS', 'MEMORY']
  const kinds = renderTable(terminal, head, summary.kinds.map(kindRow))
  const most = Math.max(1, ...summary.trend.map(totalOf))
  const trend = renderTable(
    terminal,
    ['DAY', 'RECORDS', '', 'FAILED', 'DENIED', 'SANDBOXES'],
    summary.trend.map((day) => [
      day.day,
      String(totalOf(day)),
      { text: bar(totalOf(day) / most, BAR_WIDTH), style: 'cyan' },
      bad(day.failed + day.unknown),
      bad(day.denied),
      String(day.sandboxes),
    ]),
  )
  return [facts, ...gone, '', kinds, '', trend].join('\n')
}

function kindRow(kind: AgentSummary['kinds'][number]): Row {
  const { durationMs, usage } = kind
  return [
    kind.point,
    String(kind.done),
    bad(kind.failed),
    bad(kind.denied),
    bad(kind.unknown),
    durationMs ? durationMs.p50.toFixed(1) : '-',
    durationMs ? durationMs.p95.toFixed(1) : '-',
    usage?.cpuMs === null || usage?.cpuMs === undefined ? '-' : usage.cpuMs.toFixed(1),
    usage?.memoryPeakBytes === null || usage?.memoryPeakBytes === undefined ? '-' : formatBytes(usage.memoryPeakBytes),
  ]
}

function bad(count: number): string | Cell {
  return count === 0 ? '0' : { text: String(count), style: 'red' }
}

function totalOf(day: AgentSummary['trend'][number]): number {
  return day.requested + day.done + day.failed + day.denied + day.unknown
}

function percent(rate: number | null): string {
  return rate === null ? '-' : `${(rate * 100).toFixed(1)} %`
}
