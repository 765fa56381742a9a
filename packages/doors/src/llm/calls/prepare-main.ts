import { parentPort } from 'node:worker_threads'
import { toAirlockError } from '@airlock/contract'
import { judgeLargeEvent, type JudgedEvent, type StreamedCall } from '../answer/judge-event.ts'
import { readAnswer, type ReadAnswer } from '../answer/read-answer.ts'
import type { CallName } from '../routes/find-route.ts'
import { type CallToPrepare, prepareCall, type PreparedCall } from './prepare-call.ts'

/** What a thread reads, and what it says of it. */
export interface Readings {
  readonly call: { readonly asked: CallToPrepare; readonly said: PreparedCall }
  readonly event: {
    readonly asked: { readonly bytes: Uint8Array; readonly call: StreamedCall }
    readonly said: JudgedEvent
  }
  readonly answer: {
    readonly asked: { readonly bytes: Uint8Array; readonly name: CallName }
    readonly said: ReadAnswer
  }
}
export type Reading<K extends keyof Readings = keyof Readings> = {
  readonly [N in K]: { readonly kind: N } & Readings[N]['asked']
}[K]

/** What the thread says of one text. */
export type Read<K extends keyof Readings = keyof Readings> =
  | { readonly said: Readings[K]['said'] }
  | { readonly error: { readonly code: string; readonly message: string; readonly hint: string } }

// A thread of the doors. It has no socket and no secret: bytes of one call come in, and what they say goes out.
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.on('message', (reading: Reading) => parentPort?.postMessage(answer(reading)))

function answer(reading: Reading): Read {
  try {
    return { said: read(reading) }
  } catch (thrown) {
    const { code, message, hint } = toAirlockError(thrown)
    return { error: { code, message, hint } }
  }
}

function read(reading: Reading): Readings[keyof Readings]['said'] {
  switch (reading.kind) {
    case 'call':
      return prepareCall(reading)
    case 'event':
      return judgeLargeEvent(reading.bytes, reading.call)
    case 'answer':
      return readAnswer(reading.name, reading.bytes)
  }
}
