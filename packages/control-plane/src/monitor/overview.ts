import type { Alert, MetricTotal } from '@airlock/contract'
import type { Monitor, Seen } from './monitor.ts'
import type { RaisedAlerts, Rounds } from './round-counts.ts'
import { addTotals, totalOf } from './totals.ts'

/** Those that use the most memory are named; there may be any number of others. */
const NAMED = 50
/** No tenant and no agent has such a name: theirs begin with a letter or a digit. */
export const OTHERS = '_other'

export interface MonitorOverview {
  readonly rounds: Rounds
  readonly alerts: readonly RaisedAlerts[]
  readonly tenants: readonly { readonly tenant: string; readonly total: MetricTotal }[]
  readonly agents: readonly { readonly tenant: string; readonly agent: string; readonly total: MetricTotal }[]
}

/** What the whole node does, in a bounded number of lines: the rest of the tenants, or agents, is summed as `_other`. */
export function overviewOf(
  monitor: Pick<Monitor, 'latest' | 'counts'>,
  alertsOf: (sandbox: string) => readonly Alert[],
): MonitorOverview {
  const latest = monitor.latest()
  const total = (all: readonly Seen[]): MetricTotal => totalOf(all, alertsOf)
  const tenants = [...Map.groupBy(latest, ({ row }) => row.tenant)].map(([tenant, all]) => ({
    tenant,
    total: total(all),
  }))
  const agents = [...Map.groupBy(latest, ({ row }) => `${row.tenant}/${row.agent}`)].map(([name, all]) => {
    const [tenant = '', agent = ''] = name.split('/')
    return { tenant, agent, total: total(all) }
  })
  return {
    rounds: monitor.counts.rounds,
    alerts: monitor.counts.alerts,
    tenants: bounded(tenants, { tenant: OTHERS }),
    agents: bounded(agents, { tenant: OTHERS, agent: OTHERS }),
  }
}

function bounded<T extends { readonly total: MetricTotal }>(all: readonly T[], rest: Omit<T, 'total'>) {
  const sorted = all.toSorted((a, b) => b.total.memoryBytes - a.total.memoryBytes)
  const [first, ...others] = sorted.slice(NAMED).map(({ total }) => total)
  const named = sorted.slice(0, NAMED)
  return first ? [...named, { ...rest, total: others.reduce(addTotals, first) }] : named
}
