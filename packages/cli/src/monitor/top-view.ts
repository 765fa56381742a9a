import type { Alert, AlertCounts, MetricTotal, SandboxNow } from '@airlock/sdk'
import { bar } from '../text/bar.ts'
import type { Cell } from '../text/table.ts'
import type { Style } from '../text/terminal.ts'
import { compactBytes, formatPercent } from '../text/units.ts'
import { layColumns, type Column } from './columns.ts'
import type { Line } from './line.ts'
import type { Rates } from './rates.ts'
import { alertStyle, usesOf, type Shown } from './use.ts'

export const TOP_SORTS = ['cpu', 'memory', 'pids', 'disk', 'name'] as const
export type TopSort = (typeof TOP_SORTS)[number]

const BAR_WIDTH = 8
const NARROW_NAME = 14

export interface Listing {
  readonly sandboxes: readonly SandboxNow[]
  /** Null where one look is all there is: then what was read and written is since the start. */
  readonly rates: Rates | null
}

/** A title and a line for each sandbox, in the order they come in. */
export function sandboxLines({ sandboxes, rates }: Listing, width: number): readonly Line[] {
  const hasNames = sandboxes.some(({ name }) => name !== null)
  const hasAlerts = sandboxes.some(({ alerts }) => alerts.length > 0)
  const columns: readonly Column<SandboxNow>[] = [
    { title: 'SANDBOX', cell: (one) => ({ text: one.name ?? one.sandbox, ...dimmed(one) }), narrowest: NARROW_NAME },
    ...(hasNames && width === Infinity ? [{ title: 'ID', cell: idCell }] : []),
    { title: 'AGENT', cell: (one) => ({ text: one.agent }), narrowest: NARROW_NAME, givesWay: 2 },
    { title: 'STATE', cell: ({ state }) => ({ text: state, ...stateStyle(state) }), givesWay: 3 },
    { title: 'CPU', cell: (one) => ({ text: formatPercent(cpuOf(one)), ...styleOf(one, 'cpu') }), align: 'right' },
    { title: '', cell: cpuBar, givesWay: 4 },
    { title: 'MEMORY', cell: (one) => useCell(one, 'memory', compactBytes), align: 'right' },
    { title: 'PIDS', cell: (one) => useCell(one, 'pids', String), align: 'right', givesWay: 6 },
    { title: 'DISK', cell: (one) => useCell(one, 'disk', compactBytes), align: 'right', givesWay: 5 },
    ...ioColumns(rates),
    ...(hasAlerts ? [{ title: 'ALERTS', cell: alertsCell }] : []),
  ]
  return layColumns(columns, sandboxes, width)
}

/** What all of them use together; alerts first, for what does not fit a line is cut off its end. */
export function totalLine(total: MetricTotal): Line {
  const { sandboxes, cpuPercent, memoryBytes, pids, diskBytes } = total
  const facts = [
    ['cpus', String(Number((cpuPercent / 100).toFixed(2)))],
    ['memory', compactBytes(memoryBytes)],
    ['pids', String(pids)],
    ['disk', compactBytes(diskBytes)],
  ] as const
  return [
    { text: `${sandboxes} ${sandboxes === 1 ? 'sandbox' : 'sandboxes'}`, style: 'bold' },
    { text: '  ' },
    countsCell(total.alerts),
    ...facts.flatMap(([name, text]): Line => [
      { text: `  ${name} `, style: 'dim' },
      { text, style: 'bold' },
    ]),
  ]
}

/** `1 critical 2 warning`, in the colour of the worst. */
export function countsCell({ critical, warning }: AlertCounts): Cell {
  const parts = [...(critical > 0 ? [`${critical} critical`] : []), ...(warning > 0 ? [`${warning} warning`] : [])]
  if (parts.length === 0) return { text: 'no alerts', style: 'green' }
  return { text: parts.join(' '), style: critical > 0 ? 'red' : 'yellow' }
}

/** The most first, and by name among equals, so that lines stay where they are. */
export function sortSandboxes(sandboxes: readonly SandboxNow[], sort: TopSort): readonly SandboxNow[] {
  const nameOf = (one: SandboxNow): string => one.name ?? one.sandbox
  const compareNames = (a: SandboxNow, b: SandboxNow): number =>
    compare(nameOf(a), nameOf(b)) || compare(a.sandbox, b.sandbox)
  if (sort === 'name') return sandboxes.toSorted(compareNames)
  const amount = (one: SandboxNow): number =>
    (sort === 'cpu' ? cpuOf(one) : usesOf(one.limits, one.now)[sort].used) ?? -1
  return sandboxes.toSorted((a, b) => amount(b) - amount(a) || compareNames(a, b))
}

function compare(a: string, b: string): number {
  return Number(a > b) - Number(a < b)
}

function cpuOf({ limits, now }: SandboxNow): number | null {
  return usesOf(limits, now).cpu.percent
}

/** Where the name is shown instead. */
function idCell({ name, sandbox }: SandboxNow): Cell {
  return { text: name === null ? '' : sandbox, style: 'dim' }
}

function cpuBar(one: SandboxNow): Cell {
  const text = bar((cpuOf(one) ?? 0) / 100, BAR_WIDTH).padEnd(BAR_WIDTH)
  return { text, style: alertStyle(one.alerts, 'cpu') ?? 'green' }
}

function useCell(one: SandboxNow, resource: Shown, format: (amount: number) => string): Cell {
  const { used, limit } = usesOf(one.limits, one.now)[resource]
  return { text: `${used === null ? '-' : format(used)}/${format(limit)}`, ...styleOf(one, resource) }
}

function ioColumns(rates: Rates | null): readonly Column<SandboxNow>[] {
  const amount = (one: SandboxNow, name: 'read' | 'written'): Cell => {
    const since = rates ? rates.of(one.sandbox)?.[name] : one.now?.[`${name}Bytes`]
    return { text: since === null || since === undefined ? '-' : compactBytes(since), ...dimmed(one) }
  }
  const titles = rates ? (['READ/S', 'WRITE/S'] as const) : (['READ', 'WRITTEN'] as const)
  return [
    { title: titles[0], cell: (one) => amount(one, 'read'), align: 'right', givesWay: 1 },
    { title: titles[1], cell: (one) => amount(one, 'written'), align: 'right', givesWay: 1 },
  ]
}

/** The worst first; those that are critical have a mark, for whoever sees no colours. */
function alertsCell({ alerts }: SandboxNow): Cell {
  const namesOf = (level: Alert['level']): readonly string[] =>
    alerts.filter((one) => one.level === level).map(({ resource }) => resource)
  const critical = namesOf('critical')
  const text = [...critical.map((name) => `${name}!`), ...namesOf('warning')].join(' ')
  return alerts.length === 0 ? { text } : { text, style: critical.length > 0 ? 'red' : 'yellow' }
}

function styleOf(one: SandboxNow, resource: Shown): { readonly style?: Style } {
  const style = alertStyle(one.alerts, resource)
  return style === undefined ? dimmed(one) : { style }
}

/** What stands still steps back. */
function dimmed({ state }: SandboxNow): { readonly style?: Style } {
  return state === 'active' ? {} : { style: 'dim' }
}

function stateStyle(state: SandboxNow['state']): { readonly style: Style } {
  return { style: state === 'active' ? 'green' : 'yellow' }
}
