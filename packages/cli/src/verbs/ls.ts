import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { collectPairs } from '../text/pairs.ts'
import { stateCell } from '../text/state-cell.ts'
import { renderTable, type Row } from '../text/table.ts'
import { formatBytes, formatDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

/** More than any node holds; whoever has more asks by label. */
const MOST = 10_000
const PAGE = 200

interface Options extends JsonOption {
  readonly all?: boolean
  readonly detailed?: boolean
  readonly label?: Readonly<Record<string, string>>
}

export function defineLs(command: Command, context: Context): void {
  withJson(command)
    .option('-a, --all', 'also those that have ended')
    .option('--detailed', 'with limits, isolation and labels')
    .option('--label <key=value>', 'only those with this label; may be given several times', collectPairs)
    .action(async (options: Options) => {
      const { terminal } = context
      const found = await listAll(new Airlock(), options)
      if (options.json === true) return terminal.printJson(found.map((one) => one.data))
      if (found.length === 0) return terminal.note('There are no sandboxes. Make one with "airlock create".')
      const columns = options.detailed === true ? [...COLUMNS, ...DETAILS] : COLUMNS
      const head = columns.map(([title]) => title)
      await terminal.print(
        renderTable(
          terminal,
          head,
          found.map((one): Row => columns.map(([, cell]) => cell(one.data))),
        ),
      )
    })
}

type Column = readonly [title: string, cell: (data: Sandbox['data']) => Row[number]]

const COLUMNS: readonly Column[] = [
  ['ID', (data) => data.id],
  ['NAME', (data) => data.name ?? '-'],
  ['STATE', stateCell],
  ['AGE', (data) => formatDuration(Date.now() - Date.parse(data.createdAt))],
  [
    'EXPIRES',
    (data) => (data.endedAt === null ? `in ${formatDuration(Date.parse(data.expiresAt) - Date.now())}` : '-'),
  ],
]

const DETAILS: readonly Column[] = [
  ['AGENT', (data) => data.agent],
  ['TEMPLATE', (data) => data.template],
  ['MEMORY', (data) => formatBytes(data.limits.memoryBytes)],
  ['CPUS', (data) => String(data.limits.cpus)],
  ['PIDS', (data) => String(data.limits.pids)],
  ['DISK', (data) => formatBytes(data.limits.diskBytes)],
  ['NODE', (data) => data.node],
  ['ISOLATION', (data) => (data.isolation ? `${data.isolation.runtime} ${data.isolation.tier}` : '-')],
  [
    'LABELS',
    (data) =>
      Object.entries(data.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(',') || '-',
  ],
]

async function listAll(airlock: Airlock, options: Options): Promise<readonly Sandbox[]> {
  const query = { limit: PAGE, ...(options.all === true ? { state: 'all' as const } : {}), labels: options.label }
  const found: Sandbox[] = []
  let cursor: string | undefined
  do {
    const page = await airlock.sandboxes.list({ ...query, cursor })
    found.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && found.length < MOST)
  return found
}
