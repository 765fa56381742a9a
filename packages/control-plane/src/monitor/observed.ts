import type { Alert, AlertCounts, MetricEvent, MetricSample } from '@airlock/contract'
import type { StoredSandbox } from '../store/sandboxes.ts'

/** One living sandbox in one round of the monitor. */
export interface Observed {
  readonly row: StoredSandbox
  /** Thresholds are held against its `ofLimit`: in the strict tier the kernel enforces more than the limits of the row. */
  readonly sample: MetricSample
  /** The sample before; undefined in its first round, also after a restart of ours. */
  readonly before: MetricSample | undefined
}

/** Who judges what the monitor sees. */
export interface Judge {
  /**
   * Called once in each round with all living sandboxes of this node that were sampled. Never waits and never throws: records,
   * webhooks and ends that follow from it happen by themselves. Answers what those who follow the metrics should hear; an alert that is
   * new has the time of its sample as `since`.
   */
  judge(round: readonly Observed[]): readonly MetricEvent[]
  /** What a sandbox is beyond now, and how often it was since its start. */
  of(sandbox: string): { readonly alerts: readonly Alert[]; readonly raised: AlertCounts }
}
