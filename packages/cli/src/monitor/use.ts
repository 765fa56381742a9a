import type { Alert, MetricSample, SandboxNow } from '@airlock/sdk'
import type { Style } from '../text/terminal.ts'

/** The resources with a limit that people look at. */
export const SHOWN = ['cpu', 'memory', 'pids', 'disk'] as const
export type Shown = (typeof SHOWN)[number]

/** How much of a limit is used; processors in processors. Null is what is not known. */
export interface Use {
  readonly used: number | null
  readonly limit: number
  /** Of what the kernel enforces, which may be more than was asked for: what alerts go by. */
  readonly percent: number | null
}

export function usesOf(limits: SandboxNow['limits'], now: MetricSample | null): Readonly<Record<Shown, Use>> {
  const { cpuPercent, memoryBytes, pids, diskBytes, ofLimit } = now ?? UNKNOWN
  const cpus = cpuPercent === null ? null : cpuPercent / 100
  return {
    cpu: { used: cpus, limit: limits.cpus, percent: cpuPercent === null ? null : cpuPercent / limits.cpus },
    memory: { used: memoryBytes, limit: limits.memoryBytes, percent: ofLimit.memory },
    pids: { used: pids, limit: limits.pids, percent: ofLimit.pids },
    disk: { used: diskBytes, limit: limits.diskBytes, percent: ofLimit.disk },
  }
}

const UNKNOWN = {
  cpuPercent: null,
  memoryBytes: null,
  pids: null,
  diskBytes: null,
  ofLimit: { memory: null, pids: null, disk: null },
}

/** The colour of a resource that is beyond a threshold. */
export function alertStyle(alerts: readonly Alert[], resource: Alert['resource']): Style | undefined {
  const beyond = alerts.filter((one) => one.resource === resource)
  if (beyond.length === 0) return undefined
  return beyond.some(({ level }) => level === 'critical') ? 'red' : 'yellow'
}
