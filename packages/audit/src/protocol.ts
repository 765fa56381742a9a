import { auditQuery, auditRecord, id, newRecord, signedHead } from '@airlock/contract'
import { z } from 'zod'

/**
 * What goes over the recorder's sockets: one JSON object a line, answered by its `id`, in any order. Who is calling is
 * known by the socket, so nothing here says it. An export has a connection of its own and is answered by `line`s
 * before the last answer.
 */
const requestId = z.int().min(0)
const tenant = id
export const recorderRequest = z.discriminatedUnion('op', [
  z.strictObject({
    id: requestId,
    op: z.literal('append'),
    /** Chosen by the caller: the same `rid` sent again is the same record. */
    rid: z.string().regex(/^rec_[0-9a-z]{26}$/),
    record: z.strictObject({ ...newRecord.shape, tenant }),
  }),
  z.strictObject({ id: requestId, op: z.literal('query'), tenant, query: auditQuery }),
  z.strictObject({ id: requestId, op: z.literal('export'), tenant }),
  z.strictObject({ id: requestId, op: z.literal('head'), tenant }),
])
export type RecorderRequest = z.infer<typeof recorderRequest>

export const recorderReply = z.discriminatedUnion('type', [
  z.strictObject({ id: requestId, type: z.literal('ok'), result: z.unknown() }),
  z.strictObject({ id: requestId, type: z.literal('line'), line: z.string() }),
  z.strictObject({ id: requestId, type: z.literal('error'), code: z.string(), message: z.string() }),
])
export type RecorderReply = z.infer<typeof recorderReply>

export const queryResult = z.strictObject({ records: z.array(auditRecord), nextCursor: z.string().nullable() })
export const headResult = z.strictObject({ head: signedHead, publicKey: z.string() })
