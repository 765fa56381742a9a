import { Airlock, type Audit, type AuditRecord } from '@airlock/sdk'
import type { Command } from 'commander'
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { OutputPrinter } from '../run/attach.ts'
import type { Context } from '../context.ts'
import { parseMoment } from '../text/moment.ts'
import { parseNumber } from '../text/units.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { renderTable, type Row } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'
import { addAuditStats } from './audit-stats.ts'
import { addAuditVerify } from './audit-verify.ts'

export function defineAudit(audit: Command, context: Context): void {
  addAuditLs(audit, context)
  addAuditVerify(audit, context)
  addAuditExport(audit, context)
  addAuditHead(audit, context)
  addAuditStats(audit, context)
  addAuditQuarantine(audit, context)
}

interface LsOptions extends JsonOption {
  readonly agent?: string
  readonly sandbox?: string
  readonly point?: string
  readonly status?: string
  readonly since?: string
  readonly until?: string
  readonly limit: number
}

function addAuditLs(audit: Command, context: Context): void {
  withJson(audit.command('ls').description('List records, newest first.'))
    .option('--agent <agent>', 'only of this agent')
    .option('--sandbox <id>', 'only of this sandbox')
    .option('--point <point>', 'only of this kind, like command.run')
    .option('--status <status>', 'only with this status, like denied')
    .option('--since <time>', 'only later than this time, or this long ago, like 1h', parseMoment)
    .option('--until <time>', 'only earlier than this time, or this long ago', parseMoment)
    .option('--limit <number>', 'how many at most', parseNumber, 100)
    .action(async ({ json, ...query }: LsOptions) => {
      const { terminal } = context
      const { items } = await new Airlock({ role: 'admin' }).audit.events(toQuery(query))
      if (json === true) return terminal.printJson(items)
      const head = ['SEQ', 'TIME', 'POINT', 'STATUS', 'ACTOR', 'AGENT', 'SANDBOX']
      await terminal.print(renderTable(terminal, head, items.map(recordRow)))
    })
}

/** The server knows which points and statuses there are, and says so. */
function toQuery(query: object): Parameters<Audit['events']>[0] {
  return query
}

function recordRow(record: AuditRecord): Row {
  const status = record.late ? `${record.status} (late)` : record.status
  const bad = record.status === 'failed' || record.status === 'denied' || record.status === 'unknown'
  return [
    String(record.seq),
    record.ts,
    record.point,
    bad ? { text: status, style: 'red' } : status,
    record.actor,
    record.agent ?? '-',
    record.sandbox ?? '-',
  ]
}

function addAuditExport(audit: Command, context: Context): void {
  withJson(audit.command('export').description('Write the whole chain as NDJSON, to be kept and verified elsewhere.'))
    .argument('[file]', 'where to (default: stdout)')
    .action(async (file: string | undefined, options: JsonOption) => {
      const { terminal } = context
      const chain = new Airlock({ role: 'admin' }).audit.export()
      if (file === undefined || file === '-') {
        const printer = new OutputPrinter(terminal)
        for await (const chunk of chain) await printer.write('stdout', chunk)
        return printer.finish()
      }
      const out = createWriteStream(file, { mode: 0o600 })
      await pipeline(chain, out)
      if (options.json === true) return terminal.printJson({ file, bytes: out.bytesWritten })
      terminal.note(`Wrote ${out.bytesWritten} bytes to ${file}. Verify them with: airlock audit verify ${file}`)
    })
}

function addAuditHead(audit: Command, context: Context): void {
  withJson(
    audit.command('head').description('Print a freshly signed head: kept elsewhere, it shows a later truncation.'),
  ).action(async () => {
    await context.terminal.printJson((await new Airlock({ role: 'admin' }).audit.head()).head)
  })
}

function addAuditQuarantine(audit: Command, context: Context): void {
  withJson(
    audit
      .command('quarantine')
      .description('Set aside what does not verify of the chain of a tenant, so that it goes on. Nothing is deleted.'),
  )
    .argument('<tenant>', 'whose chain; system is that of no tenant')
    .action(async (tenant: string, options: JsonOption) => {
      const { terminal } = context
      const statement = await new Airlock({ role: 'admin' }).audit.quarantine(tenant)
      if (options.json === true) return terminal.printJson(statement)
      const { to, bytes, reason } = statement.quarantined
      terminal.note(
        `Set ${bytes} bytes aside behind record ${statement.seq}: ${sanitizeLine(reason)}. The chain goes on with ${to + 1}.`,
      )
    })
}
