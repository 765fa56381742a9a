import type { GuestErrorCode } from '@airlock/contract/guest'

/** A file whose bytes flow on a channel. */
export interface Transfer {
  acknowledge(offset: number): void
  data(offset: number, bytes: Buffer): void
  end(): void
  cancel(): void
}

/** What a transfer tells; the last three end it. */
export interface TransferEvents {
  data(offset: number, bytes: Buffer): void
  acknowledge(offset: number): void
  done(type: 'eof' | 'written', bytes: number): void
  broken(code: GuestErrorCode, message: string): void
  cancelled(): void
}
