import type { AuditEvent, AuditStats, StreamedEvent } from '@airlock/contract'
import type { EventFeed } from '../../evidence/events.ts'

const TS = '2026-01-02T03:04:05.000Z'
const RECORD: AuditEvent = {
  seq: 7,
  ts: TS,
  late: false,
  agent: 'default',
  sandbox: null,
  actor: 'key:abc',
  point: 'command.run',
  status: 'denied',
  error: { code: 'policy_denied', message: 'A policy denies it.' },
  payload: { argv: ['true'] },
}

const counts = { requested: 2, done: 1, failed: 1, denied: 0, unknown: 0 }

const STATS: AuditStats = {
  records: 4,
  bytes: 4096,
  segments: 1,
  firstSeq: 1,
  lastSeq: 4,
  oldest: TS,
  newest: TS,
  perMinute: 4,
  perDay: [{ day: '2026-01-02', records: 4 }],
  points: [{ point: 'command.run', ...counts }],
  verification: { state: 'good', verifiedTo: 4, at: TS, brokenAt: null, reason: null },
  retention: { days: 30, maxBytes: 1024 ** 3, minAgeHours: 24, dropped: null },
}

/** For tests of the edge, the SDK and the CLI only: one record, told at once, and numbers that do not change. */
export const TEST_EVENTS: EventFeed = {
  page: async () => ({ items: [RECORD], after: 7, gap: null }),
  stream: async (_caller, _query, signal) => streamed(signal),
  assertAgent: async () => {},
  assertSandbox: async () => {},
  summary: async (_caller, { agent }) => ({
    agent,
    from: '2026-01-01',
    to: '2026-01-02',
    complete: true,
    sandboxes: 1,
    total: { ...counts, failureRate: 0.5, denialRate: 0 },
    kinds: [
      {
        point: 'command.run',
        ...counts,
        failureRate: 0.5,
        denialRate: 0,
        durationMs: { count: 2, p50: 10, p95: 20, max: 20 },
        usage: { count: 1, cpuMs: 5, memoryPeakBytes: 1024 },
      },
    ],
    trend: [
      { day: '2026-01-01', requested: 0, done: 0, failed: 0, denied: 0, unknown: 0, sandboxes: 0 },
      { day: '2026-01-02', ...counts, sandboxes: 1 },
    ],
  }),
  stats: async () => STATS,
}

async function* streamed(signal: AbortSignal): AsyncGenerator<StreamedEvent> {
  yield { event: 'at', seq: 6 }
  yield { event: 'record', seq: 7, record: RECORD }
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
