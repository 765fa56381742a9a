import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { decision } from './decision.ts'
import { point } from '../points.ts'
import { question } from './question.ts'
import { id, plainText, time } from './scalars.ts'

export const approvalId = z.string().regex(/^apr_[0-9a-hjkmnp-tv-z]{26}$/, 'is not the id of an approval')

/** `pending` until somebody answers or nobody did in time; `approved` until it is used, taken back or has expired. */
export const approvalState = z.enum(['pending', 'approved', 'rejected', 'expired', 'revoked', 'used'])
export type ApprovalState = z.infer<typeof approvalState>

/** What an approval covers beside the request that was asked about: see docs/approvals.md. */
export const approvalScope = z.enum(['once', 'sandbox', 'agent', 'until'])
export type ApprovalScope = z.infer<typeof approvalScope>

const note = plainText.max(BOUNDS.noteLength)

export const approveBody = z.strictObject({
  scope: approvalScope.default('once').describe('once; or again and again: in this sandbox, by this agent, or until.'),
  until: time.optional().describe('When it ends: needed by the scope until, and allowed with sandbox and agent.'),
  note: note.optional(),
})
export type ApproveBody = z.infer<typeof approveBody>

export const rejectBody = z.strictObject({ note: note.optional().describe('The requester is told.') })
export type RejectBody = z.infer<typeof rejectBody>

/** An *ask* and what became of it. */
export const approval = z.strictObject({
  id: approvalId,
  tenant: id,
  /** Who asked, as evidence names it: it may not answer. */
  requester: z.string(),
  agent: z.string().nullable(),
  sandbox: z.string().nullable(),
  point,
  /** What was asked for in one line, without secrets, cut when it is long. */
  summary: z.string(),
  /** SHA-256 of everything that matters of the request: who, what, where, and its bytes. */
  hash: z.string(),
  /** What Guardian said: the risk, and the rules that ask. */
  decision,
  state: approvalState,
  /** Null until it is approved. */
  scope: approvalScope.nullable(),
  createdAt: time,
  /** While it is pending, until when it may be answered; then until when it may be used. */
  expiresAt: time,
  answeredBy: z.string().nullable(),
  answeredAt: time.nullable(),
  note: z.string().nullable(),
  /** When it last let something pass. */
  usedAt: time.nullable(),
})
export type Approval = z.infer<typeof approval>

/** With all that was asked for: nothing is cut, what looks like a secret is redacted. */
export const approvalDetail = approval.extend({ question })
export type ApprovalDetail = z.infer<typeof approvalDetail>

/** `pending` when something is asked, `answered` when it is not pending any more or was taken back. */
export const approvalEvent = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('pending'), approval }),
  z.strictObject({ event: z.literal('answered'), approval }),
  z.strictObject({
    event: z.literal('error'),
    error: z.strictObject({ code: z.string(), message: z.string(), hint: z.string() }),
  }),
])
export type ApprovalEvent = z.infer<typeof approvalEvent>
