/** What the machine sends while it works, one JSON line each. */
export type Report =
  | { readonly kind: 'alive' }
  | { readonly kind: 'line'; readonly step: string; readonly text: string }
  /** What it said so far is of an attempt that does not count. */
  | { readonly kind: 'again'; readonly step: string }
  | StepReport
  | { readonly kind: 'end' }

export interface StepReport {
  readonly kind: 'step'
  readonly step: string
  /** Null when it was ended because it took too long. */
  readonly exitCode: number | null
  readonly seconds: number
  readonly tests: Tests | null
}

/** As `.ci/run` counts them. */
export interface Tests {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Undefined for what is not a report: a serial line may lose or gain bytes. */
export function parseReport(line: string): Report | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isReport(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isReport(value: unknown): value is Report {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false
  const { kind } = value
  if (kind === 'alive' || kind === 'end') return true
  if (!('step' in value) || typeof value.step !== 'string') return false
  if (kind === 'again') return true
  return kind === 'line' ? 'text' in value && typeof value.text === 'string' : kind === 'step' && 'exitCode' in value
}
