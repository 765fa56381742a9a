import { z } from 'zod'

/** What the kernel counted for a group, read outside. */
export const resourceUsage = z.strictObject({
  cpuMs: z.number().nullable(),
  memoryPeakBytes: z.number().nullable(),
})
export type ResourceUsage = z.infer<typeof resourceUsage>
