import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { decision, effect, risk } from './decision.ts'
import { point } from '../points.ts'
import { policyDocument, ruleKind } from './policy.ts'
import { operation, question } from './question.ts'
import { agentId, name, sandboxId, time } from './scalars.ts'

/** Whose policy it is: that of a tenant, or that of the whole server. What is shipped belongs to nobody. */
export const policyScope = z.enum(['tenant', 'platform'])
export type PolicyScope = z.infer<typeof policyScope>

const version = z.int().min(1)

/** One version of a policy. Versions rise by one and are kept. */
export const policyVersion = z.strictObject({
  scope: policyScope,
  name,
  version,
  /** False of a version that took the policy out of force. */
  inForce: z.boolean(),
  createdAt: time,
  createdBy: z.string(),
})
export type PolicyVersion = z.infer<typeof policyVersion>

export const policy = z.strictObject({
  ...policyVersion.shape,
  /** Null when it is out of force. */
  document: policyDocument.nullable(),
})
export type Policy = z.infer<typeof policy>

export const putPolicyBody = z.strictObject({
  document: policyDocument,
  expectedVersion: z
    .int()
    .min(0)
    .optional()
    .describe('The latest version as you know it, 0 for none; another one is stale_version.'),
})
export type PutPolicyBody = z.infer<typeof putPolicyBody>

/** Whether a document would be accepted, and what is wrong with it. */
export const policyCheck = z.strictObject({
  isValid: z.boolean(),
  problems: z.array(z.string()),
  rules: z.int(),
  examples: z.int(),
})
export type PolicyCheck = z.infer<typeof policyCheck>

/** What the caller could do: who asks is the caller. */
export const evaluateBody = z.strictObject({
  point,
  agent: agentId.optional(),
  sandbox: sandboxId.optional(),
  operation,
  document: policyDocument.optional().describe('A draft, in the place of the policy that has its name; for admins.'),
})
export type EvaluateBody = z.infer<typeof evaluateBody>

export const evaluation = z.strictObject({
  question,
  /** What holds: the strictest of all that have a say. */
  decision,
  sources: z.array(z.strictObject({ name: z.string(), decision })),
})
export type Evaluation = z.infer<typeof evaluation>

export const backtestBody = z.strictObject({
  document: policyDocument.describe('A draft, in the place of the policy that has its name.'),
  since: z.iso.datetime().optional(),
  until: z.iso.datetime().optional(),
  limit: z.int().min(1).max(BOUNDS.backtest).default(1000).describe('How many decisions to replay, newest first.'),
  examples: z.int().min(0).max(100).default(20),
})
export type BacktestBody = z.infer<typeof backtestBody>

export const backtest = z.strictObject({
  /** Decisions that were replayed, and those among them that would change. */
  replayed: z.int(),
  changed: z.int(),
  /** Of these the evidence holds only a part, such as the beginning of long code. */
  partial: z.int(),
  changes: z.array(z.strictObject({ from: effect, to: effect, count: z.int() })),
  examples: z.array(
    z.strictObject({
      seq: z.int(),
      ts: time,
      actor: z.string(),
      point,
      agent: z.string().nullable(),
      sandbox: z.string().nullable(),
      operation,
      before: decision,
      after: decision,
    }),
  ),
  /** There were more decisions than were asked for or looked through. */
  truncated: z.boolean(),
})
export type Backtest = z.infer<typeof backtest>

const policyInForce = z.strictObject({
  name: z.string(),
  scope: z.enum(['shipped', 'platform', 'tenant']),
  version,
  rules: z.int(),
  /** Rules of others that it switches off. */
  off: z.array(z.string()),
  /** Why it cannot be used; then everything that it governs is denied. */
  problem: z.string().nullable(),
})

export const guardianStatus = z.strictObject({
  /** What holds where no rule matches. */
  default: effect,
  policies: z.array(policyInForce),
  /** How many rules are in force, by what they are about and what they say. */
  rules: z.array(z.strictObject({ kind: ruleKind, effect, count: z.int() })),
  sources: z.array(
    z.strictObject({
      name: z.string(),
      isHealthy: z.boolean().nullable().describe('Null before it was asked.'),
      problem: z.string().nullable(),
    }),
  ),
})
export type GuardianStatus = z.infer<typeof guardianStatus>

export const ruleInForce = z.strictObject({
  policy: z.string(),
  rule: z.string(),
  kind: ruleKind,
  effect,
  risk,
  reason: z.string(),
  /** False where its policy or another one switches it off. */
  isOn: z.boolean(),
})
export type RuleInForce = z.infer<typeof ruleInForce>
