import { AirlockError, BOUNDS } from '@airlock/contract'
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller } from '../app/caller.ts'
import { HeldBytes, type Reserve } from './held-bytes.ts'

const WAIT_HEADER = 'airlock-wait-approval'

interface Asked {
  readonly route: string
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly bytes: AsyncIterable<Buffer>
  readonly reserve: Reserve
  readonly signal: AbortSignal
}

/** The caller with the request that an approval would be bound to, and the bytes of that request as they are to be read. */
export function withAsked<C extends Caller | null>(
  caller: C,
  asked: Asked,
): { readonly caller: C; readonly bytes: AsyncIterable<Buffer> } {
  if (!caller) return { caller, bytes: asked.bytes }
  const { route, params, query, body, signal } = asked
  const bytes = new HeldBytes(asked.bytes, asked.reserve)
  const request = { route, params, query, body, digest: async () => bytes.digest(), heldBytes: () => bytes.size }
  const wait = caller.approvalWait && { ...caller.approvalWait, signal }
  return { caller: { ...caller, asked: request, approvalWait: wait }, bytes }
}

/** How long a caller waits for the answer to an ask, as it says in a header: nothing is not at all. */
export function parseWait(headers: IncomingHttpHeaders, now: number): Caller['approvalWait'] {
  const header = headers[WAIT_HEADER]
  if (header === undefined) return undefined
  const seconds = Number(header)
  const most = BOUNDS.approvalWaitMs / 1000
  if (!/^\d{1,3}$/.test(String(header)) || seconds > most)
    throw new AirlockError('invalid_request', `${WAIT_HEADER}: must be seconds, at most ${most}.`)
  return { until: now + seconds * 1000, signal: new AbortController().signal }
}
