/** What an answer needs beside the call, for the demo has no clock. */
export interface DemoCall {
  readonly callId: string
  /** Seconds since 1970. */
  readonly createdAt: number
}

/** An event of a stream; without a name where the protocol has none. */
export interface DemoEvent {
  readonly name?: string
  readonly data: object | string
}
