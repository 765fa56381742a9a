import type { AgentMetrics, Alert, AlertCounts, MetricSample, SandboxMetrics } from '@airlock/sdk'
import { renderFacts, type Cell } from '../text/table.ts'
import type { Terminal } from '../text/terminal.ts'
import { formatBytes, formatDuration, formatPercent } from '../text/units.ts'
import { printedLine, type Line } from './line.ts'
import { resourceLines, type ResourceRow } from './resource-table.ts'
import { countsCell, sandboxLines, sortSandboxes, totalLine } from './top-view.ts'
import { SHOWN, usesOf, type Shown } from './use.ts'

/** Now with limits, the history, and what it is beyond. */
export function sandboxText(terminal: Terminal, metrics: SandboxMetrics): string {
  const { now, history, alerts, limits } = metrics
  const uses = usesOf(limits, now)
  const rows = SHOWN.map((resource): ResourceRow => ({ resource, use: uses[resource], history, alerts }))
  const facts = renderFacts(terminal, [
    ['sandbox', metrics.name === null ? metrics.sandbox : `${metrics.name} (${metrics.sandbox})`],
    ['agent', metrics.agent],
    ['state', metrics.state],
    ['sampled', now === null ? 'not now' : `${timeOf(now.at)}, ${formatDuration(Date.now() - Date.parse(now.at))} ago`],
    ...(now === null ? [] : counterFacts(now, limits)),
    ['alerts', countsCell(countsOf(alerts))],
    ['raised', raisedCell(metrics.raised, 'since its start')],
  ])
  const warned = paint(terminal, alerts.map(alertText))
  return [
    facts,
    '',
    ...paint(terminal, resourceLines(rows, terminal.width)),
    ...(warned.length > 0 ? ['', ...warned] : []),
  ].join('\n')
}

/** All sandboxes of an agent together, then each. */
export function agentText(terminal: Terminal, metrics: AgentMetrics): string {
  const { total, history, raised, agent } = metrics
  const used: Readonly<Record<Shown, number>> = {
    cpu: total.cpuPercent / 100,
    memory: total.memoryBytes,
    pids: total.pids,
    disk: total.diskBytes,
  }
  const rows = SHOWN.map((resource): ResourceRow => ({
    resource,
    use: { used: used[resource], limit: null, percent: null },
    history,
    alerts: [],
  }))
  const facts = renderFacts(terminal, [
    ['agent', agent],
    ['raised', raisedCell(raised, 'in the last 24 hours')],
  ])
  const sandboxes = sortSandboxes(metrics.sandboxes, 'cpu')
  const list =
    sandboxes.length === 0 ? [] : ['', ...paint(terminal, sandboxLines({ sandboxes, rates: null }, terminal.width))]
  const together = printedLine(terminal, totalLine(total))
  return [facts, '', together, '', ...paint(terminal, resourceLines(rows, terminal.width)), ...list].join('\n')
}

/** `memory is critical since 12:00:00: 96% now, from 95% on`. It may be below by now, and not for long enough. */
export function alertText({ resource, level, percent, threshold, since }: Alert): Line {
  const is = level === 'critical' ? 'critical' : 'a warning'
  const text = `${resource} is ${is} since ${timeOf(since)}: ${formatPercent(percent)} now, from ${threshold}% on`
  return [{ text, style: level === 'critical' ? 'red' : 'yellow' }]
}

/** By the clock of this machine: it is for people who look at it. */
export function timeOf(at: string): string {
  return new Date(at).toLocaleTimeString('en-GB')
}

function raisedCell(raised: AlertCounts, when: string): Cell {
  const cell = countsCell(raised)
  return { ...cell, text: `${cell.text} ${when}` }
}

/** What has no limit, or counts from the start. What the host cannot tell is left out. */
function counterFacts(
  now: MetricSample,
  limits: SandboxMetrics['limits'],
): readonly (readonly [string, string | Cell])[] {
  const bad = (text: string, count: number): string | Cell => (count > 0 ? { text, style: 'red' } : text)
  const { cpuMs, throttledMs, swapBytes, inodes, readBytes, writtenBytes, oomKills, pidsRefused, pressure } = now
  const known = (...parts: readonly (readonly [number | null, (value: number) => string])[]): string =>
    parts.flatMap(([value, text]) => (value === null ? [] : [text(value)])).join(', ')
  const facts: readonly (readonly [string, string | Cell])[] = [
    ['cpu time', known([cpuMs, formatDuration], [throttledMs, (ms) => `held back for ${formatDuration(ms)}`])],
    ['swap', known([swapBytes, formatBytes])],
    ['inodes', known([inodes, (n) => `${n} of ${limits.inodes}`])],
    ['io', known([readBytes, (n) => `${formatBytes(n)} read`], [writtenBytes, (n) => `${formatBytes(n)} written`])],
    ['oom kills', bad(known([oomKills, String]), oomKills ?? 0)],
    ['refused', bad(known([pidsRefused, (n) => `${n} processes`]), pidsRefused ?? 0)],
    [
      'pressure',
      pressure === null
        ? ''
        : known(
            [pressure.cpu, (n) => `cpu ${formatPercent(n)}`],
            [pressure.memory, (n) => `memory ${formatPercent(n)}`],
            [pressure.io, (n) => `io ${formatPercent(n)}`],
          ),
    ],
  ]
  return facts.filter(([, value]) => (typeof value === 'string' ? value : value.text) !== '')
}

function countsOf(alerts: readonly Alert[]): AlertCounts {
  const critical = alerts.filter(({ level }) => level === 'critical').length
  return { critical, warning: alerts.length - critical }
}

function paint(terminal: Terminal, lines: readonly Line[]): readonly string[] {
  return lines.map((line) => printedLine(terminal, line))
}
