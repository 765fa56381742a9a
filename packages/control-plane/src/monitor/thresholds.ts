import type { AlertLevel, Threshold } from '@airlock/contract'

/** Points below a threshold that a value has to fall before it counts as being back. */
export const HYSTERESIS = 5

/** One level: whether it holds, and how many samples in a row speak for the opposite. */
interface Latch {
  readonly isOn: boolean
  readonly against: number
}

/** Where one resource of one sandbox stands. What is critical is always a warning too. */
export interface Standing {
  readonly warning: Latch
  readonly critical: Latch
}

export interface ThresholdRule {
  readonly threshold: Threshold
  /** Samples in a row that change a level. */
  readonly sustained: number
}

/** A standing that holds at a level, or at none. */
export function standingAt(level: AlertLevel | null): Standing {
  return {
    warning: { isOn: level !== null, against: 0 },
    critical: { isOn: level === 'critical', against: 0 },
  }
}

export function levelOf({ warning, critical }: Standing): AlertLevel | null {
  if (critical.isOn) return 'critical'
  return warning.isOn ? 'warning' : null
}

/**
 * Where it stands after one more sample. A level is reached by `sustained` samples in a row at or beyond it, and left by as many
 * below it by more than the hysteresis; what lies between breaks both rows, so a value that trembles changes nothing. Null, a
 * sample that could not be taken, changes nothing either. `isPaused` reaches no level, but may leave one.
 */
export function afterSample(
  standing: Standing,
  sample: { readonly percent: number | null; readonly isPaused: boolean },
  { threshold, sustained }: ThresholdRule,
): Standing {
  const { percent, isPaused } = sample
  if (percent === null) return standing
  const turn = (latch: Latch, at: number): Latch => {
    const isAgainst = latch.isOn ? percent < at - HYSTERESIS : percent >= at && !isPaused
    if (!isAgainst) return { isOn: latch.isOn, against: 0 }
    const against = latch.against + 1
    return against < sustained ? { isOn: latch.isOn, against } : { isOn: !latch.isOn, against: 0 }
  }
  return { warning: turn(standing.warning, threshold.warning), critical: turn(standing.critical, threshold.critical) }
}
