import { parseArgs } from 'node:util'

export interface SoakConfig {
  readonly minutes: number
  readonly seed: number
  readonly sandboxes: number
  readonly json: boolean
}

export const USAGE = `npm run soak -- [--minutes 10] [--seed <number>] [--sandboxes 6] [--json]
Uses a server of its own in random order and kills its processes; then counts what is left. Needs root. Exits with 1
when something leaked or was answered that nothing explains. The same seed gives the same order.`

export function parseConfig(argv: readonly string[]): SoakConfig {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      sandboxes: { type: 'string', default: '6' },
      json: { type: 'boolean', default: false },
    },
  })
  return {
    minutes: within('minutes', values.minutes, { least: 0.1, most: 24 * 60 }),
    seed: within('seed', values.seed, { least: 0, most: Number.MAX_SAFE_INTEGER }),
    sandboxes: within('sandboxes', values.sandboxes, { least: 1, most: 100 }),
    json: values.json,
  }
}

function within(
  name: string,
  text: string,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= least && value <= most))
    throw new TypeError(`--${name} is a number from ${least} to ${most}, not "${text}".`)
  return name === 'minutes' ? value : Math.floor(value)
}
