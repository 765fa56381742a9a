import type { AuditSink, StagedSink } from '@airlock/audit'

/** For tests of what has no second stage: whatever is written is on disk. */
export function staged(sink: AuditSink): StagedSink {
  return {
    ...sink,
    requireWritten: async (record) => {
      await sink.require(record)
      return { durable: Promise.resolve() }
    },
  }
}
