import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { agentId, id, labels, plainText, time } from './scalars.ts'

/** The approved agent that every tenant begins with, for callers that are bound to no agent and name none. */
export const DEFAULT_AGENT = 'default'

/** `agents/agent-moves.ts` owns the table of legal moves. */
export const AGENT_STATES = ['unknown', 'connected', 'idle', 'suspended'] as const
export const agentState = z.enum(AGENT_STATES)
export type AgentState = z.infer<typeof agentState>

const version = plainText.min(1).max(BOUNDS.versionLength)

/** Free for the caller; nothing of ours reads it. */
const metadata = z
  .record(plainText.max(BOUNDS.labelLength), z.json())
  .refine(
    (map) => Buffer.byteLength(JSON.stringify(map)) <= BOUNDS.metadataBytes,
    `at most ${BOUNDS.metadataBytes} bytes`,
  )
  // PostgreSQL has no NUL in texts; JSON would carry one in as an escape.
  .refine((map) => !JSON.stringify(map).includes(String.raw`\u0000`), 'must not contain NUL')

/** The generation that the caller believes in: when the agent has another, nothing happens. */
const expectedGeneration = z.int().min(0)

export const registerAgentBody = z.strictObject({
  id: agentId,
  version: version.optional(),
  labels: labels.default({}),
  metadata: metadata.default({}),
  approve: z.boolean().default(false).describe('Approve it at once; for admins.'),
})
export type RegisterAgentBody = z.infer<typeof registerAgentBody>

/** What is absent stays as it is. */
export const updateAgentBody = z.strictObject({
  version: version.nullable().optional().describe('May need approval again, where the server is set up so.'),
  labels: labels.optional(),
  metadata: metadata.optional(),
  expectedGeneration: expectedGeneration.optional(),
})
export type UpdateAgentBody = z.infer<typeof updateAgentBody>

export const changeAgentBody = z.strictObject({ expectedGeneration: expectedGeneration.optional() })
export type ChangeAgentBody = z.infer<typeof changeAgentBody>

export const removeAgentQuery = z.strictObject({
  expectedGeneration: z.coerce.number().pipe(expectedGeneration).optional(),
})

export const agent = z.strictObject({
  id: agentId,
  tenant: id,
  state: agentState,
  /** Rises whenever the agent becomes connected: what was given out before is void. */
  generation: z.int(),
  approved: z.boolean(),
  version: z.string().nullable(),
  labels,
  metadata: z.record(z.string(), z.json()),
  /** Who registered it. */
  owner: z.string(),
  createdAt: time,
  updatedAt: time,
  lastSeenAt: time.nullable().describe('The last use by the agent or for it.'),
})
export type Agent = z.infer<typeof agent>
