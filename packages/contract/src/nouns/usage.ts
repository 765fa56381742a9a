import { z } from 'zod'
import { agentId, id } from './scalars.ts'

/** What an agent used on a day (UTC). */
export const usageRow = z.strictObject({
  tenant: id,
  agent: agentId,
  day: z.iso.date(),
  /** Sandboxes that lived on that day. */
  sandboxes: z.int(),
  /** How long they lived, together. */
  wallSeconds: z.number(),
  /** Processor time that the kernel counted. */
  cpuSeconds: z.number(),
  /** What the budget is charged: the processor time, and where it is not known all that they could have used. */
  computeSeconds: z.number(),
  dollars: z.number(),
})
export type UsageRow = z.infer<typeof usageRow>

export const usageReport = z.strictObject({ items: z.array(usageRow), truncated: z.boolean() })
export type UsageReport = z.infer<typeof usageReport>

export const usageQuery = z.strictObject({
  tenant: id.optional().describe('Yours when absent; another one needs a key of the platform.'),
  agent: agentId.optional(),
  from: z.iso.date().optional().describe('The first day, in UTC, such as 2026-01-31.'),
  to: z.iso.date().optional().describe('The last day.'),
})
export type UsageQuery = z.infer<typeof usageQuery>
