import { newRecord } from '@airlock/contract'
import { z } from 'zod'
import type { Json } from './redact.ts'

/**
 * A record whose payload is known to be JSON, because `redactRecord` made it or it was parsed from JSON: to look at each of
 * its values once more would cost more than all the rest of sending it.
 */
export const sentRecord = z.strictObject({
  ...newRecord.shape,
  payload: z.custom<Record<string, Json>>(isObject).default({}),
})

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
