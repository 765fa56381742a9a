import type { NoteOptions, StagedSink, Written } from '@airlock/audit'
import { AirlockError, isAirlockError, isGoverned, type NewRecord } from '@airlock/contract'

/** The way to evidence for who serves callers. Nothing governed is recorded as requested that Guardian was not asked about. */
export class EvidenceGate implements StagedSink {
  readonly #to: StagedSink

  constructor(to: StagedSink) {
    this.#to = to
  }

  async require(record: NewRecord): Promise<void> {
    assertAsked(record)
    try {
      await this.#to.require(record)
    } catch (error) {
      // Broken evidence is still read. That it was is recorded in the chain of no tenant.
      if (record.point !== 'audit.read' || !isAirlockError(error) || error.code !== 'evidence_broken') throw error
      const payload = { ...record.payload, tenant: record.tenant }
      await this.#to.require({ ...record, tenant: 'system', payload })
    }
  }

  async requireWritten(record: NewRecord): Promise<Written> {
    assertAsked(record)
    return this.#to.requireWritten(record)
  }

  note(record: NewRecord, options?: NoteOptions): void {
    assertAsked(record)
    this.#to.note(record, options)
  }

  async flush(timeoutMs: number): Promise<void> {
    await this.#to.flush(timeoutMs)
  }
}

function assertAsked({ point, status, decision }: NewRecord): void {
  if (status === 'requested' && isGoverned(point) && decision?.effect !== 'allow')
    throw new AirlockError('internal', `Guardian was not asked about ${point}.`)
}
