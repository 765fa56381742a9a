import { judge } from './budgets.ts'
import { findResult, METRICS, type Metric, type Report } from './report.ts'

const BEGIN = '<!-- bench: begin, written by npm run bench -->'
const END = '<!-- bench: end -->'

/** The text with what is between the markers replaced. */
export function replaceGenerated(document: string, generated: string): string {
  const from = document.indexOf(BEGIN)
  const to = document.indexOf(END)
  if (from === -1 || to < from) throw new TypeError(`The document has no part between ${BEGIN} and ${END}.`)
  return `${document.slice(0, from + BEGIN.length)}\n\n${generated}\n${document.slice(to)}`
}

/** A report in Markdown. */
export function renderReport(report: Report): string {
  const parts = [
    machineText(report),
    '### Budgets',
    budgetTable(report),
    '### Side by side',
    'Median, and the 95th percentile in brackets; × is the median in units of Airlock’s.',
    resultTable(report),
    skippedText(report),
    ...(report.trace.length === 0 ? [] : ['### Where the time of one create goes', traceTable(report)]),
  ]
  return parts.filter((part) => part !== '').join('\n\n') + '\n'
}

function machineText({ date, machine, isQuick }: Report): string {
  const { cpus, cpu, memoryGb, kernel, arch, cgroups, fileSystem, syncMs, load, nice, node } = machine
  const quick = isQuick ? ' A quick run: too few samples to compare.' : ''
  return (
    `Measured on ${date.slice(0, 10)}: ${cpus} × ${cpu}, ${memoryGb} GB, ${arch}, Linux ${kernel}, cgroups ${cgroups}, ` +
    `${fileSystem}, one fdatasync ${syncMs} ms, Node ${node}; load average before the run ${load}, nice ${nice}.${quick}`
  )
}

function budgetTable(report: Report): string {
  const rows = judge(report).map(({ what, budget, measured, isMet }) => [
    what,
    budget,
    measured,
    isMet ? 'met' : '**missed**',
  ])
  return table(['what', 'budget', 'measured', ''], rows)
}

function resultTable(report: Report): string {
  const names = report.contenders.map(({ name }) => name)
  const metrics = Object.keys(METRICS).filter((name): name is Metric => Object.hasOwn(METRICS, name))
  const rows = metrics
    .filter((metric) => findResult(report, metric) !== undefined)
    .map((metric) => [METRICS[metric], ...names.map((name) => cell(report, metric, name))])
  const heads = report.contenders.map(({ name, about }) => (about === '' ? name : `${name}: ${about}`))
  return table(['', ...heads], rows)
}

function cell(report: Report, metric: Metric, contender: string): string {
  const summary = findResult(report, metric, contender)
  const ours = findResult(report, metric)
  if (!summary || !ours) return ''
  const ratio = contender === 'Airlock' ? '' : `, ${(summary.p50 / ours.p50).toPrecision(2)} ×`
  const spread = summary.count > 1 ? ` (${summary.p95.toLocaleString('en')})` : ''
  return `${summary.p50.toLocaleString('en')}${spread}${ratio}`
}

function skippedText({ skipped }: Report): string {
  return skipped.map(({ name, reason }) => `Not measured: ${name}, ${reason}.`).join('\n')
}

function traceTable({ trace }: Report): string {
  const rows = trace.map(({ step, process, deltaMs, atMs }) => [step, process, deltaMs.toFixed(1), atMs.toFixed(1)])
  return table(['until', 'in', 'took, ms', 'at, ms'], rows)
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}
