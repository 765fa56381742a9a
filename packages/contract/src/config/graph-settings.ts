import { z } from 'zod'
import { DEFAULTS } from '../defaults.ts'
import { type GraphSpec, graphName, graphSpec } from '../nouns/runs/graph.ts'
import { within } from '../nouns/scalars.ts'

interface Setting {
  readonly schema: z.ZodType
  readonly about: string
}

const MIB = 1024 * 1024
const { shape } = graphSpec
const { dollars, tokens, calls } = shape.modelLimits.unwrap().shape
const setting = <T extends z.ZodType>(schema: T, about: string) => ({ schema, about }) satisfies Setting
const mebibytes = (bound: { readonly min: number; readonly max: number }) =>
  z
    .int()
    .min(bound.min / MIB)
    .max(bound.max / MIB)
    .optional()

/** An agent program of the operator: `[graph.NAME]`. */
export const GRAPH_SETTINGS = {
  description: setting(shape.description, 'What the catalog says of it.'),
  version: setting(shape.version, 'Yours; each run says with which it began.'),
  template: setting(shape.template, 'The template of its sandboxes, of the tenant that runs it.'),
  argv: setting(shape.argv.unwrap(), 'The program and its arguments, as they are in the template.'),
  models: setting(shape.models, 'Models that its runs may name, the default first; empty: the caller names one.'),
  doors: setting(shape.doors, 'Doors beside those of the template, such as `egress`.'),
  tier: setting(shape.tier, '`standard` or `strict`.'),
  timeout_s: setting(
    z
      .number()
      .min(DEFAULTS.runTimeoutMs.min / 1000)
      .max(DEFAULTS.runTimeoutMs.max / 1000)
      .default(DEFAULTS.runTimeoutMs.default / 1000),
    'Bound on one run, in seconds.',
  ),
  memory_mb: setting(mebibytes(DEFAULTS.memoryBytes), 'Memory of its sandboxes, in MiB.'),
  disk_mb: setting(mebibytes(DEFAULTS.diskBytes), 'Disk of its sandboxes, in MiB.'),
  cpus: setting(within(DEFAULTS.cpus).optional(), 'Processors of its sandboxes.'),
  dollars: setting(dollars, 'Dollars that the model calls of one run may cost.'),
  tokens: setting(tokens, 'Tokens of the model calls of one run.'),
  calls: setting(calls, 'Model calls of one run.'),
} as const satisfies Record<string, Setting>

const schemas = Object.fromEntries(Object.entries(GRAPH_SETTINGS).map(([name, { schema }]) => [name, schema])) as {
  readonly [K in keyof typeof GRAPH_SETTINGS]: (typeof GRAPH_SETTINGS)[K]['schema']
}
const table = z.strictObject(schemas)
const MAX_GRAPHS = 64

/** The schema of `[graph]`, which is in `airlock.toml` alone: tables have no variables. */
export const graphSettings = z
  .record(z.string(), table.transform(toSpec))
  .default({})
  .refine((all) => Object.keys(all).length <= MAX_GRAPHS, `at most ${MAX_GRAPHS} agent programs`)
  .superRefine((all, context) => {
    for (const name of Object.keys(all))
      if (!graphName.safeParse(`sandbox:${name}`).success || name === BUILTIN)
        context.addIssue({ code: 'custom', path: [name], message: 'is not a name, or that of a program of the server' })
  })
export type GraphSettings = z.output<typeof graphSettings>

const BUILTIN = 'agent'

function toSpec(given: z.output<typeof table>): GraphSpec {
  const { timeout_s, memory_mb, disk_mb, cpus, dollars: most, tokens: mostTokens, calls: mostCalls, ...rest } = given
  const limits = present({
    memoryBytes: memory_mb === undefined ? undefined : memory_mb * MIB,
    diskBytes: disk_mb === undefined ? undefined : disk_mb * MIB,
    cpus,
  })
  const modelLimits = present({ dollars: most, tokens: mostTokens, calls: mostCalls })
  return graphSpec.parse({ ...rest, limits, modelLimits, timeoutMs: Math.round(timeout_s * 1000) })
}

function present(of: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined))
}
