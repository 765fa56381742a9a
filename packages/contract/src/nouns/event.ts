import { z } from 'zod'
import { point, recordStatus, type Point } from '../points.ts'
import { auditRecord, droppedHead } from './record.ts'
import { agentId, sandboxId } from './scalars.ts'

/** A record as whoever follows what happens sees it. It proves nothing: evidence is what the export has. */
export const auditEvent = auditRecord.omit({ tenant: true, process: true, prev: true, hash: true }).extend({
  /** Its message is empty where the payload is withheld. */
  error: auditRecord.shape.error,
  payload: auditRecord.shape.payload.nullable().describe('null: it is not for this caller to see.'),
})
export type AuditEvent = z.infer<typeof auditEvent>

const seq = z.int().min(0)

/** `seq` is the id of each, with which a client goes on: everything up to it was sent, or does not match. */
export const streamedEvent = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('record'), seq, record: auditEvent }),
  /** Nothing matched up to here. The first event says where the stream begins. */
  z.strictObject({ event: z.literal('at'), seq }),
  /** Records up to here were dropped by retention before they could be sent. */
  z.strictObject({ event: z.literal('gap'), seq }),
  /** The last event of a client that was too slow: it goes on from here. */
  z.strictObject({ event: z.literal('cut'), seq }),
])
export type StreamedEvent = z.infer<typeof streamedEvent>

export const eventPage = z.strictObject({
  items: z.array(auditEvent),
  after: seq.describe('Give it as `after` for what comes next.'),
  gap: seq.nullable().describe('Records up to here were asked for, but dropped by retention.'),
})
export type EventPage = z.infer<typeof eventPage>

const PATTERNS = 16
const pattern = z
  .string()
  .regex(/^[a-z.]*(?:\*[a-z.]*){0,2}$/, 'must be like command.run or command.*')
  .min(1)
  .max(64)

/** Points by name or with a `*`, separated by commas. */
const points = z
  .string()
  .max(1024)
  .transform((text, context): Point[] => {
    const asked = text.split(',')
    const found = asked.every((one) => pattern.safeParse(one).success) ? matchPoints(asked) : []
    if (found.length === 0 || asked.length > PATTERNS)
      context.addIssue({ code: 'custom', message: 'must name points like command.run or command.*, at most 16' })
    return found
  })
const statuses = z
  .string()
  .max(256)
  .transform((text) => text.split(','))
  .pipe(z.array(recordStatus).max(8))

const filter = {
  point: points.optional().describe('Names or patterns like command.*, separated by commas.'),
  status: statuses.optional().describe('Statuses, separated by commas.'),
  since: z.iso.datetime().optional(),
  after: z.coerce.number().int().min(0).optional().describe('Only records later than this one.'),
  limit: z.coerce.number().int().min(1).max(1000).default(100).describe('Of a page; a stream has no end.'),
}
export const eventQuery = z.strictObject({ agent: agentId.optional(), sandbox: sandboxId.optional(), ...filter })
export const agentEventQuery = eventQuery.omit({ agent: true })
export const sandboxEventQuery = eventQuery.omit({ agent: true, sandbox: true })
export type EventQuery = z.infer<typeof eventQuery>
export type EventFilter = z.input<typeof eventQuery>

const rate = z.number().min(0).max(1).nullable()
const counts = z.strictObject({
  requested: z.int(),
  done: z.int(),
  failed: z.int(),
  denied: z.int(),
  unknown: z.int(),
})
export type StatusCounts = z.infer<typeof counts>

const operations = {
  ...counts.shape,
  failureRate: rate.describe('Of what ended, how much failed or is unknown.'),
  denialRate: rate.describe('Of what ended or was denied, how much was denied.'),
}

/** What an agent did in a window of whole days (UTC), from the records that this node has. */
export const agentSummary = z.strictObject({
  agent: z.string(),
  from: z.iso.date(),
  to: z.iso.date(),
  complete: z.boolean().describe('false: retention dropped records of these days.'),
  sandboxes: z.int().describe('Different ones that records of the agent name.'),
  total: z.strictObject(operations),
  kinds: z.array(
    z.strictObject({
      point,
      ...operations,
      durationMs: z
        .strictObject({ count: z.int(), p50: z.number(), p95: z.number(), max: z.number() })
        .nullable()
        .describe('Of the records that say one; p50 and p95 within 2.2 %, max exact.'),
      usage: z
        .strictObject({
          count: z.int(),
          cpuMs: z.number().nullable(),
          memoryPeakBytes: z.number().nullable(),
        })
        .nullable()
        .describe('Averages of what the kernel counted, where records say it.'),
    }),
  ),
  trend: z.array(z.strictObject({ day: z.iso.date(), ...counts.shape, sandboxes: z.int() })),
})
export type AgentSummary = z.infer<typeof agentSummary>

export const summaryQuery = z.strictObject({ days: z.coerce.number().int().min(1).max(90).default(7) })

export const auditStats = z.strictObject({
  records: z.int(),
  bytes: z.int(),
  segments: z.int(),
  firstSeq: z.int().describe('The oldest record that is kept; 0 when there is none.'),
  lastSeq: z.int(),
  oldest: z.iso.datetime().nullable(),
  newest: z.iso.datetime().nullable(),
  perMinute: z.int().describe('Records of the last minute.'),
  perDay: z.array(z.strictObject({ day: z.iso.date(), records: z.int() })),
  points: z.array(z.strictObject({ point, ...counts.shape })),
  verification: z.strictObject({
    state: z.enum(['pending', 'good', 'broken']).describe('Of the segments that are not written to any more.'),
    verifiedTo: seq.describe('The last record of the segments found good since the recorder started.'),
    at: z.iso.datetime().nullable(),
    brokenAt: z.int().nullable(),
    reason: z.string().nullable(),
  }),
  retention: z.strictObject({
    days: z.number(),
    minAgeHours: z.number(),
    maxBytes: z.int().describe('Of all tenants of the node together.'),
    dropped: droppedHead.nullable().describe('What vouches for all that is gone.'),
  }),
})
export type AuditStats = z.infer<typeof auditStats>

function matchPoints(asked: readonly string[]): Point[] {
  return point.options.filter((one) => asked.some((text) => isMatch(text, one)))
}

function isMatch(text: string, name: string): boolean {
  // At most two stars, so this cannot run away.
  return new RegExp(`^${text.replaceAll('.', String.raw`\.`).replaceAll('*', '[a-z.]*')}$`).test(name)
}
