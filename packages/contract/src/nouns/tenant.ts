import { z } from 'zod'
import { id, time } from './scalars.ts'

/** What is no tenant's is recorded under this name. */
const RESERVED = 'system'

export const createTenantBody = z.strictObject({
  id: id.refine((text) => text !== RESERVED, `"${RESERVED}" is reserved`),
})
export type CreateTenantBody = z.infer<typeof createTenantBody>

export const tenant = z.strictObject({ id, createdAt: time })
export type Tenant = z.infer<typeof tenant>
