import { Airlock } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { renderTable } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface UsageOptions extends JsonOption {
  readonly csv?: boolean
  readonly agent?: string
  readonly tenant?: string
  readonly from?: string
  readonly to?: string
}

export function defineUsage(usage: Command, context: Context): void {
  withJson(usage)
    .option('--csv', 'print CSV on stdout')
    .option('--agent <id>', 'of one agent')
    .option('--tenant <id>', 'of another tenant; needs a key of the platform')
    .option('--from <day>', 'from this day on, such as 2026-01-31')
    .option('--to <day>', 'up to this day')
    .action(async (options: UsageOptions) => {
      const { terminal } = context
      const { json, csv, ...query } = options
      const ledger = new Airlock({ role: 'admin' }).usage
      if (csv === true) return terminal.print((await ledger.csv(query)).trimEnd())
      const report = await ledger.report(query)
      if (json === true) return terminal.printJson(report)
      const rows = report.items.map((row) => [
        row.day,
        row.agent,
        `${row.sandboxes}`,
        row.wallSeconds.toFixed(1),
        row.computeSeconds.toFixed(1),
        row.dollars.toFixed(2),
      ])
      await terminal.print(
        renderTable(terminal, ['DAY', 'AGENT', 'SANDBOXES', 'LIVED S', 'COMPUTE S', 'DOLLARS'], rows),
      )
    })
}
