import { z } from 'zod'
import { DEFAULTS } from '../defaults.ts'
import { agentId, id, within } from './scalars.ts'

const sandboxes = within(DEFAULTS.agentSandboxes).int()
const memoryBytes = within(DEFAULTS.agentMemoryBytes).int()
const diskBytes = within(DEFAULTS.agentDiskBytes).int()
const cpus = within(DEFAULTS.agentCpus)
const computeSecondsPerDay = within(DEFAULTS.agentComputeSecondsPerDay).int()
const dollarsPerDay = within(DEFAULTS.agentDollarsPerDay)
const modelCallsPerDay = within(DEFAULTS.agentModelCallsPerDay).int()
const modelTokensPerDay = within(DEFAULTS.agentModelTokensPerDay).int()

/** What an agent, or all agents of a tenant together, may hold at once and spend in a day (UTC). */
export const budgetLimits = z.strictObject({
  sandboxes,
  memoryBytes,
  diskBytes,
  cpus,
  computeSecondsPerDay,
  dollarsPerDay,
  modelCallsPerDay,
  modelTokensPerDay,
})
export type BudgetLimits = z.infer<typeof budgetLimits>
export type BudgetLimitName = keyof BudgetLimits

export const budget = z.strictObject({
  tenant: id,
  /** Null: of the tenant as a whole. */
  agent: agentId.nullable(),
  limits: budgetLimits,
  /** Those of `limits` that somebody set; the others are the defaults of the server. */
  set: z.array(budgetLimits.keyof()),
  /** Promised to sandboxes that are being made or live. */
  reserved: z.strictObject({ sandboxes: z.int(), memoryBytes: z.int(), diskBytes: z.int(), cpus: z.number() }),
  /** Used up on this day. */
  spent: z.strictObject({
    day: z.iso.date(),
    computeSeconds: z.number(),
    dollars: z.number(),
    modelCalls: z.int(),
    modelTokens: z.int(),
  }),
})
export type Budget = z.infer<typeof budget>

/** What is absent stays as it is; null goes back to the default. */
export const setBudgetBody = z
  .strictObject({
    sandboxes: sandboxes.nullable(),
    memoryBytes: memoryBytes.nullable(),
    diskBytes: diskBytes.nullable(),
    cpus: cpus.nullable(),
    computeSecondsPerDay: computeSecondsPerDay.nullable(),
    dollarsPerDay: dollarsPerDay.nullable(),
    modelCallsPerDay: modelCallsPerDay.nullable(),
    modelTokensPerDay: modelTokensPerDay.nullable(),
  })
  .partial()
export type SetBudgetBody = z.infer<typeof setBudgetBody>
