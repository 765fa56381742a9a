import { z } from 'zod'
import { BOUNDS, DEFAULTS } from '../../defaults.ts'
import { doorNames } from '../../host/doors-api.ts'
import { runCommandBody } from '../command.ts'
import { tier } from '../decision.ts'
import { jobLanguage } from '../job.ts'
import { modelNames, someModelLimits } from '../sandbox-models.ts'
import { someLimits } from '../sandbox.ts'
import { name, plainText, time, within } from '../scalars.ts'

/** The name of an agent program. The prefix tells it from names of models. */
export const graphName = z
  .string()
  .regex(/^sandbox:[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/, 'must be sandbox:<name>, in lower case')

const fields = {
  description: plainText.max(BOUNDS.graphTextBytes).default(''),
  version: plainText.min(1).max(64).default('1').describe('Yours; runs keep the one that they began with.'),
  template: name.default('base'),
  argv: runCommandBody.shape.argv,
  code: z.string().min(1).max(BOUNDS.jobCodeBytes).optional().describe('A program, run from a file in /workspace.'),
  language: jobLanguage.optional().describe('What runs the code.'),
  models: modelNames
    .default([])
    .describe('Models that its runs may name, the default first. Empty: the caller names one, airlock/demo otherwise.'),
  modelLimits: someModelLimits.default({}).describe('Caps on the model calls of each run.'),
  limits: someLimits.default({}),
  tier: tier.default('standard'),
  doors: doorNames.default([]).describe('Doors beside `control`, `llm` and those of the template.'),
  timeoutMs: within(DEFAULTS.runTimeoutMs).int().default(DEFAULTS.runTimeoutMs.default).describe('Of one run.'),
}

/** An agent program: what starts it and within which bounds. */
export const graphSpec = z
  .strictObject(fields)
  .refine((spec) => (spec.argv === undefined) !== (spec.code === undefined), 'give either argv or code')
  .refine((spec) => (spec.code === undefined) === (spec.language === undefined), 'language goes with code')
export type GraphSpec = z.infer<typeof graphSpec>
/** As a caller writes it: what has a default may be absent. */
export type GraphInput = z.input<typeof graphSpec>

export const graph = z.strictObject({
  name: graphName,
  /** Where it comes from. Only those of the tenant can be changed by API. */
  source: z.enum(['builtin', 'configuration', 'tenant']),
  description: z.string(),
  version: z.string(),
  template: z.string(),
  argv: z.array(z.string()),
  language: jobLanguage.nullable(),
  /** Of the code, or of the arguments as JSON. */
  sha256: z.string(),
  models: z.array(z.string()),
  modelLimits: someModelLimits,
  limits: someLimits,
  tier,
  doors: z.array(z.string()),
  timeoutMs: z.int(),
  createdAt: time.nullable(),
})
export type Graph = z.infer<typeof graph>
