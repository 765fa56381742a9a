import type { Summary } from './statistics.ts'

export const MEASURES = [
  'cold',
  'trace',
  'command',
  'step',
  'crowd',
  'memory',
  'evidence',
  'requests',
  'flood',
  'model',
  'decision',
  'pause',
  'density',
  'monitor',
] as const
export type MeasureName = (typeof MEASURES)[number]

/** What is measured, as it is shown. */
export const METRICS = {
  coldResult: 'create → first result of a fresh sandbox, ms',
  coldTotal: 'create → first result → terminate, ms',
  command: 'a command in a live sandbox, ms',
  step: 'a step (1+1) in a live Python session over HTTP, ms',
  stepSdk: 'the same by the SDK, as events, ms',
  stepNode: 'the same in a Node session, over HTTP, ms',
  stepBash: 'the same in a bash session, over HTTP, ms',
  crowdWall: '20 sandboxes at once, create → result → terminate of all, ms',
  crowdEach: 'the same, per sandbox, ms',
  idleAlone: 'memory of one idle sandbox (PSS), MB',
  idleAmong: 'memory of an idle sandbox among 20 (PSS), MB',
  recordsPerSecond: 'durable records per second, 1,024 in flight',
  recordMs: 'one durable record, ms',
  listPerSecond: 'API: list sandboxes, requests per second',
  getPerSecond: 'API: get a sandbox, requests per second',
  floodTerminate: 'terminate by a newcomer, while one key of another tenant keeps 1,000 connections busy, ms',
  floodKill: 'the killswitch for one sandbox by a newcomer, during the same flood, ms',
  floodReduce: 'both, ms',
  modelPath: 'the way of the data: `/health` of the door of models by its port, of the upstream on the host, ms',
  modelPathSocket: 'the same by the socket of the door, ms',
  modelFirst: 'first byte of a streamed model call, by the port: decision, reservation and record included, ms',
  modelFirstSocket: 'the same by the socket, ms',
  modelRate: 'model calls per second, 16 at once, by the port',
  modelRateSocket: 'the same by the socket',
  decisionUs: 'a decision about a command line of the corpus, µs',
  pause: 'pause of a live sandbox, ms',
  resume: 'resume of a paused sandbox, ms',
  denseCount: 'density: idle sandboxes that were made',
  denseHost: 'density: what each further one takes of the host (MemAvailable), MB',
  densePss: 'density: the same by PSS, with our server, MB',
  fitsExtrapolated: 'density: idle sandboxes until 16 GB are used, extrapolated by the larger of both',
  fitsReally: 'density: idle sandboxes until 16 GB were used, really',
  monitorRound: 'monitor: a round over all sandboxes, CPU of both planes, ms',
  monitorData: 'monitor: of it the data plane, ms',
  monitorBare: 'monitor: a round over bare groups, CPU of the reader, ms',
  monitorPercent: 'monitor: 200 sandboxes and 800 bare groups every 5 s, % of a core',
} as const
export type Metric = keyof typeof METRICS

export interface Result {
  readonly metric: Metric
  readonly contender: string
  readonly summary: Summary
}

/** One step of a create, a command and a terminate: how long after the one before it. */
export interface TracedStep {
  readonly step: string
  readonly process: string
  readonly deltaMs: number
  readonly atMs: number
}

export interface Machine {
  readonly cpu: string
  readonly cpus: number
  readonly memoryGb: number
  readonly kernel: string
  readonly arch: string
  readonly cgroups: string
  readonly fileSystem: string
  /** An append of 4 KB and its fdatasync, where the state is. */
  readonly syncMs: number
  /** Of the last minute, before the first sample: a machine that works for others measures slower. */
  readonly load: number
  /** The nice value of the run; below 0 it went before whatever else the machine did. */
  readonly nice: number
  readonly node: string
}

export interface Report {
  readonly date: string
  readonly isQuick: boolean
  readonly machine: Machine
  readonly contenders: readonly { readonly name: string; readonly about: string }[]
  readonly skipped: readonly { readonly name: string; readonly reason: string }[]
  readonly results: readonly Result[]
  readonly trace: readonly TracedStep[]
}

export function findResult(
  report: Pick<Report, 'results'>,
  metric: Metric,
  contender = 'Airlock',
): Summary | undefined {
  return report.results.find((result) => result.metric === metric && result.contender === contender)?.summary
}
