import type { NewRecord, Point } from '@airlock/contract'

/** What a record is about. */
export interface Deed {
  readonly point: Point
  readonly tenant: string
  readonly agent: string | null
  readonly sandbox: string | null
  readonly actor: string
  /** What was asked for, as evidence shows it. */
  readonly payload: NonNullable<NewRecord['payload']>
}
