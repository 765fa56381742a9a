import { formatBytes } from '@airlock/std'
import { InvalidArgumentError } from 'commander'

export { formatBytes }

const SIZES: Readonly<Record<string, number>> = { '': 1, b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 }
const DURATIONS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Bytes: `512m`, `1.5g`, `4096`. */
export function parseSize(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?$/.exec(text.toLowerCase()) ?? []
  if (number === '') throw new InvalidArgumentError('Use a size like 512m or 1g.')
  return Math.round(Number(number) * (SIZES[unit] ?? 1))
}

export function parseNumber(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || !Number.isFinite(number)) throw new InvalidArgumentError('Use a number.')
  return number
}

/** Milliseconds: `90s`, `10m`, `1h30m`. A bare number is seconds. */
export function parseDuration(text: string): number {
  if (/^\d+$/.test(text)) return Number(text) * 1000
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text))
    throw new InvalidArgumentError('Use a duration like 90s or 10m.')
  let total = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    total += Number(number) * (DURATIONS[unit ?? ''] ?? 0)
  return Math.round(total)
}

/** What the contract allows of an option, so that a mistake is named by its option and before anything is sent. */
export interface Bounds {
  readonly min: number
  readonly max: number
}

export function sizeWithin({ min, max }: Bounds): (text: string) => number {
  return (text) => {
    const bytes = parseSize(text)
    if (bytes >= min && bytes <= max) return bytes
    throw new InvalidArgumentError(`It is ${bytes} bytes, and ${formatBytes(min)} to ${formatBytes(max)} are possible.`)
  }
}

export function durationWithin({ min, max }: Bounds): (text: string) => number {
  const possible = `From ${formatBound(min)} to ${formatBound(max)} is possible.`
  return (text) => {
    const ms = /^(?:none|never|unlimited|infinity)$/i.test(text) ? Infinity : parseDuration(text)
    if (ms >= min && ms <= max) return ms
    throw new InvalidArgumentError(possible)
  }
}

export function numberWithin({ min, max }: Bounds): (text: string) => number {
  return (text) => {
    const number = parseNumber(text)
    if (number >= min && number <= max) return number
    throw new InvalidArgumentError(`From ${min} to ${max} is possible.`)
  }
}

/** As it is typed: `24h`, and not a day. */
function formatBound(ms: number): string {
  if (ms < 1000) return `${ms}ms`
  return ms % 3_600_000 === 0 ? `${ms / 3_600_000}h` : formatDuration(ms)
}

/** In at most five characters, for where there are many: `512M`, `1.5G`. */
export function compactBytes(bytes: number): string {
  const units = ['B', 'K', 'M', 'G', 'T']
  // What would be rounded up to a thousand of a unit is shown as one of the next.
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(bytes * (1024 / 999.5), 1)) / 10))
  const value = bytes / 1024 ** power
  const short = value < 9.95 && !Number.isInteger(value) ? value.toFixed(1).replace('.0', '') : value.toFixed(0)
  return `${short}${units[power]}`
}

/** `0.4%`, `87%`; `-` for what is not known. */
export function formatPercent(percent: number | null): string {
  if (percent === null) return '-'
  return `${percent >= 0.05 && percent < 9.95 ? percent.toFixed(1) : percent.toFixed(0)}%`
}

/** Two units at most: `1h 5m`, `42s`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  const first = parts.findIndex(([value]) => value > 0)
  if (first === -1) return '0s'
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value}${unit}`)
    .join(' ')
}
