import { z } from 'zod'
import type { ErrorCode } from '../errors.ts'
import { type Point, POINTS } from '../points.ts'
import type { Role } from '../nouns/principal.ts'
import { plainText } from '../nouns/scalars.ts'

/**
 * One row of the table of routes.
 *
 * `answers`: `json` (the `response` schema), `json-or-events` (the same, or `events` as SSE when the caller accepts
 * text/event-stream), `json-or-csv` (the same, or text/csv when accepted), `json-or-frames` (the same, or SSE of another API when the body asks for it), `bytes`, `lines` (NDJSON) or `none` (204). `sends` is `json` when there is a body schema, `bytes`
 * for an upload. `needs` is what the server must be before a handler is asked, `repeats` whether asking twice has the effect of
 * asking once, so that a client may ask again when the answer was lost. `effect` is the audit point of what the route does; routes that only read their own tenant's rows have none.
 */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly needs: Needs
  readonly repeats: 'safe' | 'unsafe'
  readonly summary: string
  readonly roles: readonly Role[] | 'public'
  /** Concerns the whole server, so the role alone is not enough: the key must be of the platform. */
  readonly scope?: 'platform'
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  readonly sends?: 'bytes'
  readonly answers: 'json' | 'json-or-events' | 'json-or-csv' | 'json-or-frames' | 'bytes' | 'lines' | 'none' | 'text'
  readonly response?: z.ZodType
  readonly events?: z.ZodType
  /** 202 for what goes on after the answer; 200 when absent. */
  readonly status?: 202
  readonly errors: readonly ErrorCode[]
  readonly effect?: Point
}

/** `serving`: started, and not stopping. `granting`: and the node is ours, so that what is granted is not granted twice. */
export type Needs = 'nothing' | 'serving' | 'granting'

/** Whether a route only takes power away. No limit on how much somebody asks for may stop it. */
export function isReducing({ effect }: Route): boolean {
  return effect !== undefined && POINTS[effect].reduces
}

export const USERS: readonly Role[] = ['admin', 'operator', 'developer']
export const READERS: readonly Role[] = ['admin', 'operator', 'developer', 'auditor']

export const cursor = plainText.max(64).optional()
export const pageLimit = z.coerce.number().int().min(1).max(200).default(50)
export const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true')
export const page = <T extends z.ZodType>(item: T) =>
  z.strictObject({ items: z.array(item), nextCursor: z.string().nullable() })

/** What may go wrong with a sandbox that should be there. */
export const LIVE: readonly ErrorCode[] = [
  'sandbox_not_found',
  'sandbox_not_active',
  'sandbox_paused',
  'killed',
  'sandbox_ended',
  'wrong_node',
  'guest_lost',
  'data_plane_unavailable',
  'evidence_unavailable',
]

/** What may go wrong when one is made. */
export const CREATES: readonly ErrorCode[] = [
  'agent_required',
  'agent_not_found',
  'agent_not_approved',
  'agent_suspended',
  'killed',
  'grant_refused',
  'worktree_refused',
  'worktree_too_large',
  'template_not_found',
  'template_failed',
  'model_not_found',
  'budget_exhausted',
  'capacity_exhausted',
  'host_disk_full',
  'isolation_unavailable',
  'start_failed',
  'evidence_unavailable',
  'data_plane_unavailable',
  'door_unavailable',
]
