import { z } from 'zod'
import { BOUNDS, DEFAULTS } from '../defaults.ts'
import { role } from './principal.ts'
import { agentId, id, name, time, within } from './scalars.ts'

export const keyId = z.string().regex(/^[0-9a-hjkmnp-tv-z]{12}$/, 'is not the id of a key')

/** A person who holds keys: a name or an address. Lower-case, so that it is written in one way. */
const person = z
  .string()
  .max(BOUNDS.nameLength)
  .regex(/^[a-z0-9][a-z0-9._@+-]*$/, 'must be lower-case letters, digits, ".", "_", "@", "+" or "-"')

export const createKeyBody = z.strictObject({
  name,
  role,
  tenant: id.optional().describe('Yours when absent; another one needs a key of the platform.'),
  agents: z
    .array(agentId)
    .min(1)
    .max(BOUNDS.keyAgents)
    .optional()
    .describe('The only agents that the key may act for; never with the role admin.'),
  platform: z
    .boolean()
    .default(false)
    .describe('It may do what is of the whole server; only such a key makes another.'),
  person: person
    .optional()
    .describe('Who holds the key. No key answers an ask of the same person. The person of your own key when absent.'),
  expiresInMs: within(BOUNDS.keyLifeMs).int().optional().describe('It does not expire when absent.'),
})
export type CreateKeyBody = z.infer<typeof createKeyBody>

export const rotateKeyBody = z.strictObject({
  overlapMs: within(DEFAULTS.keyOverlapMs)
    .int()
    .default(DEFAULTS.keyOverlapMs.default)
    .describe('How long the old secret stays good beside the new one.'),
  expiresInMs: within(BOUNDS.keyLifeMs).int().optional().describe('The end of the old key when absent.'),
})
export type RotateKeyBody = z.infer<typeof rotateKeyBody>

/** A key as everybody may see it: its secret is kept by nobody. */
export const apiKey = z.strictObject({
  id: keyId,
  tenant: id,
  name: z.string(),
  role,
  agents: z.array(z.string()).nullable(),
  platform: z.boolean(),
  createdAt: time,
  createdBy: z.string(),
  expiresAt: time.nullable(),
  revokedAt: time.nullable(),
  lastUsedAt: time.nullable(),
  /** The key that this one took over from. */
  replaces: z.string().nullable(),
  /** Who holds it, as its maker said. */
  person: z.string().nullable(),
})
export type ApiKey = z.infer<typeof apiKey>

/** The only answer that ever holds the secret. */
export const newApiKey = z.strictObject({ key: apiKey, secret: z.string() })
export type NewApiKey = z.infer<typeof newApiKey>
