import type { GuestMessage } from '@airlock/contract/guest'

/** Where everything for the host goes. While no host is attached it is dropped: what matters is said again. */
export interface Outbox {
  send(message: GuestMessage): void
  sendData(data: DataFrame): void
}

export interface DataFrame {
  readonly channel: number
  readonly stream: number
  readonly offset: number
  readonly bytes: Buffer
}
