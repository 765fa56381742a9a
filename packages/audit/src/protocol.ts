import { agentSummary, auditQuery, auditRecord, auditStats, id, quarantinedHead, signedHead } from '@airlock/contract'
import { z } from 'zod'
import { recordFilter } from './record-filter.ts'
import { sentRecord } from './sent-record.ts'

/**
 * What goes over the recorder's sockets: one JSON object a line, answered by its `id`, in any order. Who is calling is
 * known by the socket, so nothing here says it. An export has a connection of its own and is answered by `line`s
 * before the last answer; so has who follows a chain, and its last answer never comes.
 */
const requestId = z.int().min(0)
const tenant = id
const rid = z.string().regex(/^rec_[0-9a-z]{26}$/)
/** Acknowledged records that a question may name. */
export const MAX_RIDS = 1000
/** The last record that was seen. */
const after = z.int().min(0)
export const recorderRequest = z.discriminatedUnion('op', [
  z.strictObject({
    id: requestId,
    op: z.literal('append'),
    /** Chosen by the caller: the same `rid` sent again is the same record. */
    rid,
    /** Whether to say `written`, too, before the last answer. */
    early: z.literal(true).optional(),
    /** Nobody waits for it: it may go to the disk together with the next. */
    patient: z.literal(true).optional(),
    record: z.strictObject({ ...sentRecord.shape, tenant }),
  }),
  z.strictObject({ id: requestId, op: z.literal('query'), tenant, query: auditQuery }),
  z.strictObject({ id: requestId, op: z.literal('export'), tenant }),
  z.strictObject({ id: requestId, op: z.literal('head'), tenant }),
  z.strictObject({
    id: requestId,
    op: z.literal('settle'),
    tenant,
    head: signedHead.nullable(),
    rids: z.array(rid).max(MAX_RIDS),
  }),
  z.strictObject({
    id: requestId,
    op: z.literal('quarantine'),
    tenant,
    /** Who asked for it. */
    by: z.string(),
    head: signedHead.nullable(),
  }),
  z.strictObject({
    id: requestId,
    op: z.literal('page'),
    tenant,
    filter: recordFilter,
    after: after.optional(),
    limit: z.int().min(1).max(1000),
  }),
  z.strictObject({ id: requestId, op: z.literal('follow'), tenant, filter: recordFilter, after: after.optional() }),
  z.strictObject({
    id: requestId,
    op: z.literal('summary'),
    tenant,
    agent: z.string(),
    from: z.iso.date(),
    to: z.iso.date(),
  }),
  z.strictObject({ id: requestId, op: z.literal('stats'), tenant }),
])
export type RecorderRequest = z.infer<typeof recorderRequest>

export const recorderReply = z.discriminatedUnion('type', [
  z.strictObject({ id: requestId, type: z.literal('ok'), result: z.unknown() }),
  /** In its file: no death of a process takes it away any more. The last answer comes when it is on disk. */
  z.strictObject({ id: requestId, type: z.literal('written') }),
  z.strictObject({ id: requestId, type: z.literal('line'), line: z.string() }),
  z.strictObject({ id: requestId, type: z.literal('error'), code: z.string(), message: z.string() }),
])
export type RecorderReply = z.infer<typeof recorderReply>

export const queryResult = z.strictObject({ records: z.array(auditRecord), nextCursor: z.string().nullable() })
export const headResult = z.strictObject({ head: signedHead, publicKey: z.string() })

/** How a chain is. `waiting`: it could not be found out yet. */
export const settledResult = z.strictObject({
  state: z.enum(['good', 'broken', 'waiting']),
  reason: z.string().nullable(),
  publicKey: z.string(),
})
export type Settled = z.infer<typeof settledResult>

export const pageResult = z.strictObject({
  records: z.array(auditRecord),
  /** Everything up to here is in the page, or does not match. */
  after,
  /** Records up to here were asked for but are dropped. */
  gap: after.nullable(),
})
export type RecordPage = z.infer<typeof pageResult>

/** What a `line` says to who follows a chain. */
export const followed = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('record'), record: auditRecord }),
  /** Nothing matched up to here. */
  z.strictObject({ type: z.literal('at'), seq: after }),
  /** Records up to here were dropped before they were read. */
  z.strictObject({ type: z.literal('gap'), seq: after }),
])
export type Followed = z.infer<typeof followed>

export const quarantineResult = quarantinedHead
export const summaryResult = agentSummary
export const statsResult = auditStats
