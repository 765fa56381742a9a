const LEVELS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const

/**
 * A line of bars, as high as their share of the highest; a blank is a time of which nothing is known. Where there are more
 * values than characters, each shows the highest of its part: a peak is never lost.
 */
export function sparkline(values: readonly (number | null)[], width: number): string {
  const shown =
    values.length <= width ? values : Array.from({ length: width }, (_, i) => highest(part(values, i, width)))
  const most = highest(shown) ?? 0
  return shown.map((value) => (value === null ? ' ' : levelOf(value, most))).join('')
}

function part<T>(values: readonly T[], index: number, parts: number): readonly T[] {
  const begin = Math.floor((index * values.length) / parts)
  return values.slice(begin, Math.floor(((index + 1) * values.length) / parts))
}

export function highest(values: readonly (number | null)[]): number | null {
  return values.reduce((most, value) => (value === null || (most !== null && most >= value) ? most : value), null)
}

function levelOf(value: number, most: number): string {
  const level = most > 0 ? Math.ceil((value / most) * LEVELS.length) - 1 : 0
  return LEVELS[Math.max(0, Math.min(LEVELS.length - 1, level))] ?? ''
}
