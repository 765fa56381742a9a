import { parseArgs } from 'node:util'
import { MEASURES, type MeasureName } from './report.ts'

export interface BenchConfig {
  /** Few samples: to see that it works, not to compare. */
  readonly quick: boolean
  readonly only: readonly MeasureName[]
  /** The report itself on stdout, instead of tables. */
  readonly json: boolean
  /** Density is not extrapolated: sandboxes are made until 16 GB are used. */
  readonly fill: boolean
}

export const USAGE = `npm run bench -- [--quick] [--only ${MEASURES.join(',')}] [--json] [--fill]
A whole run writes bench/results/<date>-<machine>.json and the table in docs/performance.md; --quick and --only write nothing.
--fill makes idle sandboxes until 16 GB are really used; without it that is extrapolated from 100.`

export function parseConfig(argv: readonly string[]): BenchConfig {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: 'boolean' },
      only: { type: 'string' },
      json: { type: 'boolean' },
      fill: { type: 'boolean' },
    },
  })
  const wanted = values.only?.split(',') ?? MEASURES
  const only = MEASURES.filter((name) => wanted.includes(name))
  if (only.length !== wanted.length) throw new TypeError(`There is no such measure among ${wanted.join(', ')}.`)
  return { quick: values.quick ?? false, only, json: values.json ?? false, fill: values.fill ?? false }
}

export function isWhole(config: BenchConfig): boolean {
  return !config.quick && config.only.length === MEASURES.length
}

/** The environment of a server: nothing of the developer's own but where programs are. */
export function serverEnvironment(home: string, more: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: '/root', AIRLOCK_HOME: home, AIRLOCK_PORT: '0', ...more }
}
