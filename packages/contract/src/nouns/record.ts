import { z } from 'zod'
import { decision } from './decision.ts'
import { point, recordStatus } from '../points.ts'
import { askingRole } from './principal.ts'

/** What a process hands to the recorder. The payload is redacted before it gets here and again before it is written. */
export const newRecord = z.strictObject({
  tenant: z.string(),
  agent: z.string().nullable().default(null),
  sandbox: z.string().nullable().default(null),
  /** Who did it: `key:<id>` for a principal, `sandbox:<id>` for a program inside, `system` for us. */
  actor: z.string(),
  point,
  status: recordStatus,
  /** What Guardian said of it, and in which role it was asked for. */
  decision: decision.optional(),
  role: askingRole.optional(),
  durationMs: z.number().optional(),
  error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
  payload: z.record(z.string(), z.json()).default({}),
  /** When it happened, if the record comes later than that. */
  happenedAt: z.iso.datetime().optional(),
})
export type NewRecord = z.input<typeof newRecord>

/** One line of evidence: `hash` = SHA-256 over the canonical record without `hash` and `mac`, which includes `prev`. */
export const auditRecord = z.strictObject({
  ...newRecord.shape,
  agent: z.string().nullable(),
  sandbox: z.string().nullable(),
  payload: z.record(z.string(), z.json()),
  seq: z.int().min(1),
  ts: z.iso.datetime(),
  /** Which of our processes sent it; the recorder knows by the socket. */
  process: z.string(),
  /** It joined the chain after the action that it records. */
  late: z.boolean(),
  prev: z.string().regex(/^[0-9a-f]{64}$/),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
})
export type AuditRecord = z.infer<typeof auditRecord>

/** A signed statement that the chain of `tenant` has `hash` at `seq`. */
export const signedHead = z.strictObject({
  tenant: z.string(),
  seq: z.int().min(0),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  ts: z.iso.datetime(),
  keyId: z.string(),
  signature: z.string(),
  /** Signed for the end of an export: an export that does not end with such a head was cut off behind another. */
  end: z.literal(true).optional(),
})
export type SignedHead = z.infer<typeof signedHead>

/** A signed statement that retention dropped all records up to `seq`, where the chain had `hash`. */
export const droppedHead = z.strictObject({
  ...signedHead.shape,
  seq: z.int().min(1),
  dropped: z.strictObject({
    /** The time of the newest record that is gone. */
    newest: z.iso.datetime(),
    segments: z.int().min(1),
    bytes: z.int().min(1),
  }),
})
export type DroppedHead = z.infer<typeof droppedHead>

/** A signed statement that the chain verifies up to `seq` and not beyond: an export of such a chain ends with it. */
export const brokenHead = z.strictObject({ ...signedHead.shape, broken: z.strictObject({ reason: z.string() }) })
export type BrokenHead = z.infer<typeof brokenHead>

/**
 * A signed statement that what followed `seq` does not verify and was set aside. It is a link of the chain: the next record is the
 * one after `to`, and its `prev` is the hash of this statement. What was set aside had no number beyond `to`.
 */
export const quarantinedHead = z.strictObject({
  ...signedHead.shape,
  quarantined: z.strictObject({
    to: z.int().min(1),
    bytes: z.int().min(0),
    /** Of the bytes that were set aside, in the order of their files. */
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    reason: z.string(),
    by: z.string(),
  }),
})
export type QuarantinedHead = z.infer<typeof quarantinedHead>

/** The evidence of a tenant on one node: each node has a recorder of its own, with a chain and a key of its own. */
export const auditChain = z.strictObject({
  node: z.string(),
  url: z.string().describe('Where the node answers; its evidence is exported there.'),
  /** The latest head that the node kept in the store. */
  head: signedHead,
  publicKey: z.string(),
  seenAt: z.iso.datetime().describe('The last sign of life of the node; its start, if it has a store of its own.'),
})
export type AuditChain = z.infer<typeof auditChain>

export const auditQuery = z.strictObject({
  agent: z.string().optional(),
  sandbox: z.string().optional(),
  point: point.optional(),
  status: recordStatus.optional(),
  since: z.iso.datetime().optional(),
  until: z.iso.datetime().optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.string().regex(/^\d+$/).optional().describe('Answers records older than this one.'),
})
export type AuditQuery = z.infer<typeof auditQuery>
