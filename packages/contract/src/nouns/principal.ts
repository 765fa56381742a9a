import { z } from 'zod'

export const ROLES = ['admin', 'operator', 'developer', 'auditor'] as const
export const role = z.enum(ROLES)
export type Role = z.infer<typeof role>

/** Who is calling. `actor` is what evidence names. */
export interface Principal {
  readonly actor: string
  readonly tenant: string
  readonly role: Role
  /** The agents it may act for; null means every agent of its tenant. */
  readonly agents: readonly string[] | null
  /** It may do what concerns the whole server: tenants, keys of other tenants, metrics, paths of the host. Their sandboxes are not among it. */
  readonly platform: boolean
}
