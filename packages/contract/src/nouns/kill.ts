import { z } from 'zod'
import { agentId, id, plainText, sandboxId, time } from './scalars.ts'

export const killScope = z.enum(['sandbox', 'agent', 'tenant', 'all'])
export type KillScope = z.infer<typeof killScope>

/** What a killswitch is about: a sandbox or an agent by its id, a tenant by its name, or everything. */
const about = {
  scope: killScope,
  target: z
    .union([sandboxId, agentId, id])
    .optional()
    .describe('Which one: needed for a sandbox and an agent; your own tenant when absent.'),
  tenant: id.optional().describe('Whose agent it is: yours when absent; another one needs a key of the platform.'),
}

type About = { readonly [K in keyof typeof about]?: unknown }
const isNamed = ({ scope, target }: About) => (scope !== 'sandbox' && scope !== 'agent') || target !== undefined
const isWhole = ({ scope, target, tenant }: About) => scope !== 'all' || (target === undefined && tenant === undefined)
const NAMED = { message: 'name the sandbox or the agent', path: ['target'] }
const WHOLE = { message: 'the scope "all" has no target', path: ['target'] }

export const killBody = z
  .strictObject({ ...about, reason: plainText.max(500).default('') })
  .refine(isNamed, NAMED)
  .refine(isWhole, WHOLE)
export type KillBody = z.infer<typeof killBody>

export const liftBody = z.strictObject(about).refine(isNamed, NAMED).refine(isWhole, WHOLE)
export type LiftBody = z.infer<typeof liftBody>

/** What became of one sandbox. Times are milliseconds from the moment at which its node heard of the kill. */
export const killedSandbox = z.strictObject({
  id: sandboxId,
  node: z.string(),
  frozenMs: z.number().nullable().describe('Until it stood still; null when it was not seen to.'),
  goneMs: z.number().nullable().describe('Until the kernel showed none of its processes; null while it may have some.'),
  processes: z.int().nullable().describe('How many it had; null when nobody counted.'),
  verified: z.boolean(),
})
export type KilledSandbox = z.infer<typeof killedSandbox>

export const kill = z.strictObject({
  id: z.string(),
  scope: killScope,
  tenant: id.nullable().describe('Null for everything.'),
  target: z.string().nullable(),
  reason: z.string(),
  actor: z.string(),
  at: time,
  liftedAt: time.nullable(),
  liftedBy: z.string().nullable(),
  persisted: z.boolean().describe('False while the store cannot take it: then it is in a file of its server alone.'),
})
export type Kill = z.infer<typeof kill>

export const killReport = kill.extend({
  sandboxes: z.array(killedSandbox),
  slowestMs: z.number().nullable(),
  unverified: z.array(sandboxId).describe('What may still live: it is tried again every second.'),
  nodesDue: z.array(z.string()).describe('Other nodes that have not ended theirs yet.'),
})
export type KillReport = z.infer<typeof killReport>
