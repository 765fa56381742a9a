import { z } from 'zod'
import { limits, sandboxState } from './sandbox.ts'
import { agentId, id, sandboxId, time } from './scalars.ts'

const count = z.number().min(0).nullable()

/** Shares of the last ten seconds in which something (`some`) waited for the resource, in percent. */
const pressure = z.strictObject({ cpu: count, memory: count, io: count })

/**
 * How much is used of what the kernel enforces, in percent: what thresholds are held against. Limits of the strict tier are
 * wider than those that were asked for, and those of disks hold for each writable place: here it is the fullest.
 * Memory that is filling up counts without files that nobody used for a while: the kernel gives those up at once.
 */
const ofLimit = z.strictObject({ memory: count, pids: count, disk: count, inodes: count })

/**
 * What the kernel says of a sandbox at one moment, read outside. Counters grow from its start; null is what this host cannot
 * tell. Memory, processes and time are of all its processes, the guest included, unless a line says otherwise.
 */
const counted = {
  cpuMs: count.describe('Processor time since its start.'),
  throttledMs: count.describe('How long user code was held back by its limit of processors, since its start.'),
  memoryBytes: count.describe('Of user code, as its limit counts it; in the strict tier of all of the sandbox.'),
  swapBytes: count,
  pids: count.describe(
    'Processes and threads of user code, as its limit counts them; in the strict tier those of its kernel.',
  ),
  diskBytes: count.describe('In all of its writable places.'),
  inodes: count,
  readBytes: count.describe('From its disk, since its start; what the host had in memory counts too.'),
  writtenBytes: count,
  oomKills: count.describe('Processes that the kernel ended for want of memory, since its start.'),
  pidsRefused: count.describe('Processes that the limit refused, since its start, at least.'),
  ofLimit,
  pressure: pressure.nullable().describe('Where the kernel has it (PSI).'),
}

/** One sandbox, as the data plane samples it; `at` is epoch milliseconds. */
export const nodeSample = z.strictObject({ id: sandboxId, at: z.number(), ...counted })
export type NodeSample = z.infer<typeof nodeSample>

export const nodeMetrics = z.strictObject({
  samples: z.array(nodeSample),
  /** What it cost to take them. */
  tookMs: z.number(),
})
export type NodeMetrics = z.infer<typeof nodeMetrics>

/** `cpuPercent` is since the sample before: 100 is one processor. */
export const metricSample = z.strictObject({ at: time, cpuPercent: count, ...counted })
export type MetricSample = z.infer<typeof metricSample>

/** What is watched against thresholds, each in percent of the limit. */
export const WATCHED = ['cpu', 'memory', 'disk', 'inodes', 'pids'] as const
export const watched = z.enum(WATCHED)
export type Watched = z.infer<typeof watched>

export const alertLevel = z.enum(['warning', 'critical'])
export type AlertLevel = z.infer<typeof alertLevel>

/** A threshold that a sandbox is beyond, since when. */
export const alert = z.strictObject({
  sandbox: sandboxId,
  agent: agentId,
  resource: watched,
  level: alertLevel,
  percent: z.number(),
  threshold: z.number(),
  since: time,
})
export type Alert = z.infer<typeof alert>

export const alertCounts = z.strictObject({ warning: z.int(), critical: z.int() })
export type AlertCounts = z.infer<typeof alertCounts>

/** A stretch of time: averages of gauges with their maxima, and how much counters grew. */
export const metricPoint = z.strictObject({
  at: time.describe('Its beginning.'),
  spanMs: z.int(),
  samples: z.int(),
  cpuPercent: count,
  cpuPercentMax: count,
  memoryBytes: count,
  memoryBytesMax: count,
  pids: count,
  pidsMax: count,
  diskBytes: count,
  throttledMs: count,
  readBytes: count,
  writtenBytes: count,
  oomKills: count,
})
export type MetricPoint = z.infer<typeof metricPoint>

/** How fine the history is: kept for a quarter of an hour, a day and a week. */
export const metricResolution = z.enum(['5s', '1m', '15m'])
export type MetricResolution = z.infer<typeof metricResolution>

export const metricsQuery = z.strictObject({
  resolution: metricResolution.default('5s').describe('5s for a quarter of an hour, 1m for a day, 15m for a week.'),
  since: z.iso.datetime().optional(),
})
export type MetricsQuery = z.infer<typeof metricsQuery>

/** A line of `airlock top`. */
export const sandboxNow = z.strictObject({
  sandbox: sandboxId,
  name: z.string().nullable(),
  agent: agentId,
  state: sandboxState,
  limits,
  now: metricSample.nullable().describe('Null before the first sample, and when it has ended.'),
  alerts: z.array(alert).describe('What it is beyond now.'),
  raised: alertCounts.describe('Alerts since its start.'),
})
export type SandboxNow = z.infer<typeof sandboxNow>

export const sandboxMetrics = z.strictObject({ ...sandboxNow.shape, history: z.array(metricPoint) })
export type SandboxMetrics = z.infer<typeof sandboxMetrics>

/** What the living sandboxes of an agent or a tenant on this node use together. */
export const metricTotal = z.strictObject({
  sandboxes: z.int(),
  cpuPercent: z.number(),
  memoryBytes: z.number(),
  pids: z.number(),
  diskBytes: z.number(),
  alerts: alertCounts.describe('Sandboxes that are beyond a threshold now count each resource once.'),
})
export type MetricTotal = z.infer<typeof metricTotal>

export const agentMetrics = z.strictObject({
  agent: agentId,
  total: metricTotal,
  raised: alertCounts.describe('Alerts of the last 24 hours.'),
  sandboxes: z.array(sandboxNow),
  history: z.array(metricPoint).describe('Of all its sandboxes on this node together, as they were at each moment.'),
})
export type AgentMetrics = z.infer<typeof agentMetrics>

export const tenantMetrics = z.strictObject({
  tenant: id,
  total: metricTotal,
  sandboxes: z.array(sandboxNow),
  truncated: z.boolean(),
})
export type TenantMetrics = z.infer<typeof tenantMetrics>

export const tenantMetricsQuery = z.strictObject({ agent: agentId.optional() })

/** One event of a stream of metrics. */
export const metricEvent = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('sample'), sandbox: sandboxId, sample: metricSample }),
  z.strictObject({ event: z.literal('alert'), alert }),
  z.strictObject({ event: z.literal('cleared'), sandbox: sandboxId, resource: watched, at: time }),
  z.strictObject({ event: z.literal('ended'), sandbox: sandboxId }),
])
export type MetricEvent = z.infer<typeof metricEvent>
