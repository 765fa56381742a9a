import { InvalidArgumentError } from 'commander'
import { parseDuration } from './units.ts'

/** A time as it is, or how long ago. */
export function parseMoment(text: string): string {
  if (/^\d+(?:ms|s|m|h|d)/.test(text)) return new Date(Date.now() - parseDuration(text)).toISOString()
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new InvalidArgumentError('Use a time like 2026-01-31T12:00:00Z, or a duration like 1h.')
  return new Date(time).toISOString()
}
