import { Airlock, type UsageGroup, type UsageQuery, type UsageRow } from '@airlock/sdk'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Context } from '../context.ts'
import { renderTable } from '../text/table.ts'
import { parseDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface UsageOptions extends JsonOption {
  readonly csv?: boolean
  readonly by?: UsageGroup
  readonly agent?: string
  readonly sandbox?: string
  readonly run?: string
  readonly model?: string
  readonly tenant?: string
  readonly since?: string
  readonly from?: string
  readonly to?: string
}

export function defineUsage(usage: Command, context: Context): void {
  withJson(usage)
    .addOption(
      new Option('--by <what>', 'one row for each (default: day and agent)').choices([
        'day',
        'agent',
        'sandbox',
        'model',
      ]),
    )
    .option('--csv', 'print CSV on stdout')
    .option('--agent <id>', 'of one agent')
    .option('--sandbox <id>', 'of one sandbox')
    .option('--run <id>', 'of one run of an agent program')
    .option('--model <name>', 'calls of one model')
    .option('--tenant <id>', 'of another tenant; needs a key of the platform')
    .option('--from <day>', 'from this day on, such as 2026-01-31')
    .addOption(new Option('--since <time>', 'the same, or days ago: 7d').argParser(parseSince).conflicts('from'))
    .option('--to <day>', 'up to this day')
    .action(async (options: UsageOptions) => {
      const { terminal } = context
      const { json, csv, since, from = since, ...rest } = options
      const query: UsageQuery = from === undefined ? rest : { ...rest, from }
      const ledger = new Airlock({ role: 'admin' }).usage
      if (csv === true) return terminal.print((await ledger.csv(query)).trimEnd())
      const report = await ledger.report(query)
      if (json === true) return terminal.printJson(report)
      const columns = columnsOf(query.by)
      const rows = report.items.map((row) => columns.map(([, show]) => show(row)))
      await terminal.print(
        renderTable(
          terminal,
          columns.map(([head]) => head),
          rows,
        ),
      )
      const estimated = report.items.reduce((sum, row) => sum + row.estimatedCalls, 0)
      if (estimated > 0)
        terminal.note(`${estimated} calls reported no usage (~): they are charged the most that they could cost.`)
      if (report.truncated) terminal.note('There is more: name fewer days with --from and --to.')
    })
}

type Column = readonly [head: string, show: (row: UsageRow) => string]

const COMPUTE: readonly Column[] = [
  ['SANDBOXES', (row) => `${row.sandboxes}`],
  ['LIVED S', (row) => row.wallSeconds.toFixed(1)],
  ['COMPUTE S', (row) => row.computeSeconds.toFixed(1)],
]
const MODELS: readonly Column[] = [
  ['CALLS', (row) => `${row.calls}${row.estimatedCalls > 0 ? ` (~${row.estimatedCalls})` : ''}`],
  ['IN', (row) => `${row.inputTokens}`],
  ['OUT', (row) => `${row.outputTokens}`],
  ['CACHED', (row) => `${row.cacheReadTokens + row.cacheWriteTokens}`],
  ['DOLLARS', (row) => formatDollars(row.microDollars)],
]
const DAY: Column = ['DAY', (row) => row.day ?? '-']
const AGENT: Column = ['AGENT', (row) => row.agent ?? '-']

function columnsOf(by: UsageGroup | undefined): readonly Column[] {
  switch (by) {
    case 'model':
      return [['MODEL', (row) => row.model ?? '-'], ...MODELS]
    case 'agent':
      return [AGENT, ...COMPUTE, ...MODELS]
    case 'sandbox':
      return [['SANDBOX', (row) => row.sandbox ?? '-'], AGENT, ...COMPUTE.slice(1), ...MODELS]
    case 'day':
      return [DAY, ...COMPUTE, ...MODELS]
    case undefined:
      return [DAY, AGENT, ...COMPUTE, ...MODELS]
  }
}

/** Two digits, or as many as a small amount needs. */
function formatDollars(microDollars: number): string {
  const dollars = microDollars / 1e6
  return microDollars % 10_000 === 0 ? dollars.toFixed(2) : `${Number(dollars.toFixed(6))}`
}

/** A day in UTC. */
function parseSince(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return text
  if (!/^\d+[dh]$/.test(text))
    throw new InvalidArgumentError('Use a day like 2026-01-31, or a time ago like 7d or 12h.')
  return new Date(Date.now() - parseDuration(text)).toISOString().slice(0, 10)
}
