import { z } from 'zod'

export const ROLES = ['admin', 'operator', 'developer', 'auditor'] as const
export const role = z.enum(ROLES)
export type Role = z.infer<typeof role>

/** In which role Guardian is asked: that of a key, or as a program in a sandbox, which has none at the API. */
export const askingRole = z.enum([...ROLES, 'sandbox'])
export type AskingRole = z.infer<typeof askingRole>

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

/** A program in a sandbox, known by its door and its token. No route lets it in: it may ask Guardian, and nothing else. */
export interface SandboxPrincipal {
  readonly actor: string
  readonly tenant: string
  readonly role: 'sandbox'
  readonly agent: string
  readonly sandbox: string
}
