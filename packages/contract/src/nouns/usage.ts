import { z } from 'zod'
import { modelName } from '../host/model-routes.ts'
import { agentId, id, runId, sandboxId } from './scalars.ts'

/** What facts of the ledger add up to. A column by which rows are not told apart is null. */
export const usageRow = z.strictObject({
  tenant: id,
  day: z.iso.date().nullable().describe('In UTC.'),
  agent: agentId.nullable(),
  sandbox: sandboxId.nullable(),
  model: z.string().nullable(),
  /** Sandboxes that used something. */
  sandboxes: z.int(),
  /** How long they lived, together. */
  wallSeconds: z.number(),
  /** Processor time that the kernel counted. */
  cpuSeconds: z.number(),
  /** What the budget is charged: the processor time, and where it is not known all that they could have used. */
  computeSeconds: z.number(),
  /** Calls of models that were sent. */
  calls: z.int(),
  /** Calls whose provider reported no usage: they are charged their ceiling, and their tokens are not below. */
  estimatedCalls: z.int(),
  inputTokens: z.int().describe('Without those read from a cache or written to one.'),
  outputTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheWriteTokens: z.int(),
  microDollars: z.int(),
  dollars: z.number(),
})
export type UsageRow = z.infer<typeof usageRow>

export const usageReport = z.strictObject({ items: z.array(usageRow), truncated: z.boolean() })
export type UsageReport = z.infer<typeof usageReport>

/** `model` leaves out what is no call of a model. */
export const USAGE_GROUPS = ['day', 'agent', 'sandbox', 'model'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]

export const usageQuery = z.strictObject({
  tenant: id.optional().describe('Yours when absent; another one needs a key of the platform.'),
  agent: agentId.optional(),
  sandbox: sandboxId.optional(),
  run: runId.optional().describe('The same as naming the sandbox of that run.'),
  model: modelName.optional().describe('By its name, not by an alias.'),
  from: z.iso.date().optional().describe('The first day, in UTC, such as 2026-01-31.'),
  to: z.iso.date().optional().describe('The last day.'),
  by: z.enum(USAGE_GROUPS).optional().describe('One row for each; for each day and agent when absent.'),
})
export type UsageQuery = z.infer<typeof usageQuery>
