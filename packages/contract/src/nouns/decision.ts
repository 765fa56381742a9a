import { z } from 'zod'

/** From the weakest to the strictest: of several the strictest holds. */
export const EFFECTS = ['allow', 'ask', 'deny'] as const
export const effect = z.enum(EFFECTS)
export type Effect = z.infer<typeof effect>

export const RISKS = ['low', 'medium', 'high', 'critical'] as const
export const risk = z.enum(RISKS)
export type Risk = z.infer<typeof risk>

export const tier = z.enum(['standard', 'strict'])
export type Tier = z.infer<typeof tier>

/** What an operation must keep to when it is allowed. Of two the stricter holds; absent means no bound. */
export const conditions = z.strictObject({
  /** A command or step may run no longer. */
  maxTimeoutMs: z.int().min(1).optional(),
  /** What of the host is seen in the sandbox is seen read-only. */
  readOnly: z.literal(true).optional(),
  /** The sandbox is isolated at least like that. */
  tier: z.literal('strict').optional(),
})
export type Conditions = z.infer<typeof conditions>

/** A rule that had a say. */
export const matchedRule = z.strictObject({
  /** Where it is written: the name of a policy, or `opa`. */
  policy: z.string(),
  rule: z.string(),
  effect,
  risk,
  reason: z.string(),
})
export type MatchedRule = z.infer<typeof matchedRule>

/** What Guardian says of one operation. No rule matched: the configured default, with low risk. */
export const decision = z.strictObject({
  effect,
  risk,
  rules: z.array(matchedRule),
  conditions,
  /** Which versions of which policies were asked, such as `builtin@1,house@7`. */
  policyVersion: z.string(),
})
export type Decision = z.infer<typeof decision>
