import { parentPort } from 'node:worker_threads'
import { toAirlockError } from '@airlock/contract'
import { type CallToPrepare, prepareCall, type PreparedCall } from './prepare-call.ts'

/** What the thread says of one call. */
export type Prepared =
  | { readonly prepared: PreparedCall }
  | { readonly error: { readonly code: string; readonly message: string; readonly hint: string } }

// A thread of the doors. It has no socket and no secret: bytes of one call come in, and the call goes out.
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.on('message', (call: CallToPrepare) => parentPort?.postMessage(answer(call)))

function answer(call: CallToPrepare): Prepared {
  try {
    return { prepared: prepareCall(call) }
  } catch (thrown) {
    const { code, message, hint } = toAirlockError(thrown)
    return { error: { code, message, hint } }
  }
}
