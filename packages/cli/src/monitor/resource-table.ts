import type { Alert, MetricPoint } from '@airlock/sdk'
import { bar } from '../text/bar.ts'
import type { Cell } from '../text/table.ts'
import { formatBytes, formatDuration, formatPercent } from '../text/units.ts'
import { layColumns, type Column } from './columns.ts'
import { onTimeAxis } from './history.ts'
import type { Line } from './line.ts'
import { highest, sparkline } from './sparkline.ts'
import { alertStyle, type Shown, type Use } from './use.ts'

const BAR_WIDTH = 10
const SPARK = { min: 16, max: 60 }
/** What the columns beside the history take, at most. */
const BESIDE = 64

export interface ResourceRow {
  readonly resource: Shown
  readonly use: Omit<Use, 'limit'> & { readonly limit: number | null }
  readonly history: readonly MetricPoint[]
  readonly alerts: readonly Alert[]
}

/** A line for each resource: now, of its limit where there is one, the most, and the history. */
export function resourceLines(rows: readonly ResourceRow[], width: number): readonly Line[] {
  const hasLimits = rows.some(({ use }) => use.limit !== null)
  const room = Math.max(SPARK.min, Math.min(SPARK.max, width - BESIDE))
  const limited: readonly Column<ResourceRow>[] = [
    { title: 'LIMIT', cell: ({ resource, use }) => ({ text: amountText(resource, use.limit) }), align: 'right' },
    { title: 'SHARE', cell: (row) => styled(row, formatPercent(row.use.percent)), align: 'right' },
    {
      title: '',
      cell: (row) => styled(row, bar((row.use.percent ?? 0) / 100, BAR_WIDTH).padEnd(BAR_WIDTH)),
      givesWay: 1,
    },
  ]
  const columns: readonly Column<ResourceRow>[] = [
    { title: 'RESOURCE', cell: ({ resource }) => ({ text: resource }) },
    { title: 'NOW', cell: ({ resource, use }) => ({ text: amountText(resource, use.used) }), align: 'right' },
    ...(hasLimits ? limited : []),
    { title: 'PEAK', cell: peakCell, align: 'right' },
    { title: `HISTORY${stretchOf(rows)}`, cell: (row) => sparkCell(row, room) },
  ]
  return layColumns(columns, rows, width)
}

/** How long ago the history begins. */
function stretchOf([row]: readonly ResourceRow[]): string {
  const first = row?.history[0]
  return first ? ` OF ${formatDuration(Date.now() - Date.parse(first.at)).toUpperCase()}` : ''
}

function sparkCell({ resource, history }: ResourceRow, width: number): Cell {
  const text = sparkline(onTimeAxis(history, resource), width)
  return text === '' ? { text: 'none yet', style: 'dim' } : { text, style: 'cyan' }
}

function peakCell({ resource, history }: ResourceRow): Cell {
  const peak = highest(onTimeAxis(history, resource))
  return { text: amountText(resource, peak !== null && resource === 'cpu' ? peak / 100 : peak) }
}

function styled(row: ResourceRow, text: string): Cell {
  return { text, style: alertStyle(row.alerts, row.resource) ?? 'green' }
}

/** How much of a resource, in words. */
function amountText(resource: Shown, amount: number | null): string {
  if (amount === null) return '-'
  if (resource === 'cpu') return `${Number(amount.toFixed(2))} cpu`
  return resource === 'pids' ? String(Math.round(amount)) : formatBytes(Math.round(amount))
}
