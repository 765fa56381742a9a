import type { StagedSink, Written } from '@airlock/audit'
import { AirlockError, isGoverned, type NewRecord } from '@airlock/contract'

/** The way to evidence for who serves callers. Nothing governed is recorded as requested that Guardian was not asked about. */
export class EvidenceGate implements StagedSink {
  readonly #to: StagedSink

  constructor(to: StagedSink) {
    this.#to = to
  }

  async require(record: NewRecord): Promise<void> {
    assertAsked(record)
    await this.#to.require(record)
  }

  async requireWritten(record: NewRecord): Promise<Written> {
    assertAsked(record)
    return this.#to.requireWritten(record)
  }

  note(record: NewRecord): void {
    assertAsked(record)
    this.#to.note(record)
  }

  async flush(timeoutMs: number): Promise<void> {
    await this.#to.flush(timeoutMs)
  }
}

function assertAsked({ point, status, decision }: NewRecord): void {
  if (status === 'requested' && isGoverned(point) && decision?.effect !== 'allow')
    throw new AirlockError('internal', `Guardian was not asked about ${point}.`)
}
