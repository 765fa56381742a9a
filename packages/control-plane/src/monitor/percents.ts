import type { Limits, MetricSample, Watched } from '@airlock/contract'

export type Percents = Readonly<Record<Watched, number | null>>

/** What a sandbox uses of what the kernel lets it have, in percent with one decimal; null is what nobody can tell. */
export function percentsOf({ cpuPercent, ofLimit }: MetricSample, { cpus }: Limits): Percents {
  return {
    // 100 is one processor there, and all that it may have here.
    cpu: tenths(cpuPercent === null ? null : cpuPercent / cpus),
    memory: tenths(ofLimit.memory),
    disk: tenths(ofLimit.disk),
    inodes: tenths(ofLimit.inodes),
    pids: tenths(ofLimit.pids),
  }
}

function tenths(percent: number | null): number | null {
  return percent === null ? null : Math.round(percent * 10) / 10
}
