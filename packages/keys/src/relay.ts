import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { AirlockError, CALL_HEADERS, isAirlockError } from '@airlock/contract'
import type { Answer } from './upstream/answer.ts'

/** Time in which a caller must take one piece of an answer, at most 64 KiB. */
const STALL_MS = 60_000

/** Passes an answer on as fast as the caller reads it. Cuts a caller that takes nothing, so that its place upstream is free. */
export async function relay(
  answer: Answer,
  response: ServerResponse,
  { signal, stallMs = STALL_MS }: { readonly signal: AbortSignal; readonly stallMs?: number },
): Promise<void> {
  try {
    response.writeHead(200, {
      ...answer.headers,
      [CALL_HEADERS.status]: answer.status,
      'transfer-encoding': 'chunked',
      trailer: CALL_HEADERS.end,
    })
    // The head of a stream goes out before its first event.
    response.flushHeaders()
    const end = await relayBody(answer, response, { signal, stallMs })
    response.addTrailers({ [CALL_HEADERS.end]: end })
    response.end()
  } finally {
    answer.close()
  }
}

interface Patience {
  readonly signal: AbortSignal
  readonly stallMs: number
}

/** Answers the value of the trailer. */
async function relayBody(answer: Answer, response: ServerResponse, patience: Patience): Promise<string> {
  try {
    for await (const piece of answer.body) if (!response.write(piece)) await drained(response, patience)
    // The doors read the events, and know the last one.
    return answer.isFramed ? 'whole' : 'upstream_broken'
  } catch (error) {
    if (patience.signal.aborted || !isAirlockError(error)) throw error
    return error.code
  }
}

/** A caller that stalls cannot be told: its connection is cut, and `signal` aborts with it. */
async function drained(response: ServerResponse, { signal, stallMs }: Patience): Promise<void> {
  const timer = setTimeout(
    () => response.destroy(new AirlockError('timeout', 'The caller stopped reading the answer.')),
    stallMs,
  )
  try {
    await once(response, 'drain', { signal })
  } finally {
    clearTimeout(timer)
  }
}
