import { point, recordStatus } from '@airlock/contract'
import { z } from 'zod'

/** Which records are meant; what is absent does not matter. */
export const recordFilter = z.strictObject({
  /** Of one of these agents. */
  agents: z.array(z.string()).optional(),
  /** Of some agent, whichever. */
  anyAgent: z.boolean().optional(),
  sandbox: z.string().optional(),
  points: z.array(point).optional(),
  statuses: z.array(recordStatus).optional(),
  since: z.iso.datetime().optional(),
  until: z.iso.datetime().optional(),
})
export type RecordFilter = z.infer<typeof recordFilter>
