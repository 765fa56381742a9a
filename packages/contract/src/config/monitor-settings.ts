import { z } from 'zod'

/** A threshold that is set lower than this would never be left again: an alert clears only a few points below it. */
const LEAST = 10

/** What a sandbox may be ended for by the monitor. */
const ENDED_FOR = ['pids', 'oom', 'disk', 'cpu'] as const
export const endedFor = z.enum(ENDED_FOR)
export type EndedFor = z.infer<typeof endedFor>

const percent = z.int().min(LEAST).max(100)

/** In percent of the limit. */
export const threshold = z
  .strictObject({ warning: percent, critical: percent })
  .refine(({ warning, critical }) => warning <= critical, 'a warning comes before what is critical')
export type Threshold = z.infer<typeof threshold>

/** Thresholds as `airlock.toml` has them. */
export const thresholdText = z
  .string()
  .refine((text) => isParsed(() => parseThreshold(text)), `is off, or two percentages from ${LEAST} to 100 like 80/95`)

/** Null is off. Throws what zod throws. */
export function parseThreshold(text: string): Threshold | null {
  if (text === 'off') return null
  const [, warning, critical] = /^(\d{1,3})\/(\d{1,3})$/.exec(text) ?? []
  return threshold.parse({ warning: Number(warning), critical: Number(critical) })
}

/** Why sandboxes are ended, as `airlock.toml` has it. */
export const endedForText = z
  .string()
  .refine((text) => isParsed(() => parseEndedFor(text)), `is none, or a list out of ${ENDED_FOR.join(',')}`)

export function parseEndedFor(text: string): readonly EndedFor[] {
  if (text === 'none') return []
  return [...new Set(z.array(endedFor).parse(text.split(',').map((word) => word.trim())))]
}

function isParsed(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch {
    // What is wrong with it is said by whoever asked.
    return false
  }
}
