import { findResult, type Report } from './report.ts'
import { round } from './statistics.ts'

export interface Verdict {
  readonly what: string
  readonly budget: string
  readonly measured: string
  readonly isMet: boolean
}

interface Budget {
  readonly what: string
  readonly budget: string
  readonly unit: string
  /** Undefined when it was not measured. */
  readonly measure: (report: Report) => number | undefined
  readonly isMet: (measured: number) => boolean
}

const BARE = 'bare process'

/** The budgets of the design that apply to what is built, on two cores. */
const BUDGETS: readonly Budget[] = [
  {
    what: 'create → first result of a fresh sandbox, cold, p50',
    budget: '≤ 150 ms',
    unit: 'ms',
    measure: (report) => findResult(report, 'coldResult')?.p50,
    isMet: (ms) => ms <= 150,
  },
  {
    what: 'a command in a live sandbox, p50 above a bare spawn',
    budget: '≤ 15 ms',
    unit: 'ms',
    measure: (report) => minus(findResult(report, 'command')?.p50, findResult(report, 'command', 'bare process')?.p50),
    isMet: (ms) => ms <= 15,
  },
  {
    what: 'one step in a live session over HTTP, p50 above the bare interpreter',
    budget: '≤ 3 ms',
    unit: 'ms',
    measure: (report) => minus(findResult(report, 'step')?.p50, findResult(report, 'step', 'bare process')?.p50),
    isMet: (ms) => ms <= 3,
  },
  {
    what: 'a decision about a command line of the corpus, p50',
    budget: '≤ 50 µs',
    unit: 'µs',
    measure: (report) => findResult(report, 'decisionUs')?.p50,
    isMet: (us) => us <= 50,
  },
  {
    what: 'durable records per second',
    budget: '≥ 5,000',
    unit: '',
    measure: (report) => findResult(report, 'recordsPerSecond')?.p50,
    isMet: (count) => count >= 5_000,
  },
  {
    what: 'terminate and killswitch by newcomers, while one key keeps 1,000 connections busy, p99',
    budget: '≤ 1,000 ms',
    unit: 'ms',
    measure: (report) => findResult(report, 'floodReduce')?.p99,
    isMet: (ms) => ms <= 1_000,
  },
  {
    what: 'a model call from inside: the way of the data by the port, p50 above direct',
    budget: '≤ 1 ms',
    unit: 'ms',
    measure: (report) => minus(findResult(report, 'modelPath')?.p50, findResult(report, 'modelPath', BARE)?.p50),
    isMet: (ms) => ms <= 1,
  },
  {
    what: 'the same with decision, reservation and record, first byte, p50 above direct',
    budget: '≤ 3 ms',
    unit: 'ms',
    measure: (report) => minus(findResult(report, 'modelFirst')?.p50, findResult(report, 'modelFirst', BARE)?.p50),
    isMet: (ms) => ms <= 3,
  },
  {
    what: 'model calls per second by the socket, 16 at once, in units of direct',
    budget: '≥ 0.5 ×',
    unit: '×',
    measure: (report) =>
      over(findResult(report, 'modelRateSocket')?.p50, findResult(report, 'modelRateSocket', BARE)?.p50),
    isMet: (ratio) => ratio >= 0.5,
  },
  {
    what: 'the same by the port',
    budget: '≥ 0.3 ×',
    unit: '×',
    measure: (report) => over(findResult(report, 'modelRate')?.p50, findResult(report, 'modelRate', BARE)?.p50),
    isMet: (ratio) => ratio >= 0.3,
  },
  {
    what: 'memory of an idle sandbox (PSS), alone',
    budget: '≤ 20 MB',
    unit: 'MB',
    measure: (report) => findResult(report, 'idleAlone')?.p50,
    isMet: (megabytes) => megabytes <= 20,
  },
  {
    what: 'monitor: 200 sandboxes and 800 bare groups every 5 s, of a core',
    budget: '≤ 5 %',
    unit: '%',
    measure: (report) => (report.isQuick ? undefined : findResult(report, 'monitorPercent')?.p50),
    isMet: (percent) => percent <= 5,
  },
]

export function judge(report: Report): readonly Verdict[] {
  return BUDGETS.flatMap(({ what, budget, unit, measure, isMet }) => {
    const measured = measure(report)
    if (measured === undefined) return []
    return [
      { what, budget, measured: `${round(measured).toLocaleString('en')} ${unit}`.trim(), isMet: isMet(measured) },
    ]
  })
}

function minus(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a - b
}

function over(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a / b
}
