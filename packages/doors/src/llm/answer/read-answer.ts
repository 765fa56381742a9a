import { AirlockError } from '@airlock/contract'
import { isRecord } from '../json/is-record.ts'
import type { CallName } from '../routes/find-route.ts'
import type { Usage } from '../usage/usage.ts'
import { UsageMeter } from '../usage/usage-meter.ts'
import { idHeaders } from './error-body.ts'
import { typeStreamError } from './provider-error.ts'
import { responseError } from './stream-error.ts'

/** What an upstream's status line and headers begin. */
export type AnswerKind = 'stream' | 'json' | 'failure' | 'broken'

interface AnswerHead {
  readonly status: number
  readonly contentType: string | undefined
}

/** A stream is answered by a stream; anything else that is no error is not the protocol. */
export function kindOfAnswer({ status, contentType = '' }: AnswerHead, isStream: boolean): AnswerKind {
  if (status >= 400 && status <= 599) return 'failure'
  const type = contentType.split(';')[0]?.trim().toLowerCase()
  const wanted = isStream ? 'text/event-stream' : 'application/json'
  return status === 200 && type === wanted ? kindWanted(isStream) : 'broken'
}

function kindWanted(isStream: boolean): AnswerKind {
  return isStream ? 'stream' : 'json'
}

/** All headers of an answer. None is the provider's: they name its account, its limits and its machines. */
export function answerHeaders(kind: 'stream' | 'json', callId: string): Readonly<Record<string, string>> {
  const type = kind === 'stream' ? 'text/event-stream; charset=utf-8' : 'application/json'
  return { 'content-type': type, 'cache-control': 'no-store', ...idHeaders(callId) }
}

/** An answer that came whole. */
export interface ReadAnswer {
  /** The bytes that go on in its place; null where it goes on as it is. */
  readonly replaced: Uint8Array | null
  readonly usage: Usage | 'missing'
  readonly isFinal: boolean
}

/** Reads what an answer used. Fails as `upstream_broken`, or with the provider's error. */
export function readAnswer(name: CallName, bytes: Uint8Array): ReadAnswer {
  const body = parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  if (!isRecord(body)) throw new AirlockError('upstream_broken')
  const meter = new UsageMeter(name)
  meter.takeBody(body)
  const { usage, isFinal } = meter
  if (!isRecord(body['error'])) return { replaced: null, usage, isFinal }
  const error = typeStreamError(body['error'])
  // A response that failed was used all the same. Others have no such field: some gateways answer 200 with an error.
  if (name !== 'responses') throw error
  return { replaced: Buffer.from(JSON.stringify({ ...body, error: responseError(error) })), usage, isFinal }
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    // The caller sees that it is no object.
    return undefined
  }
}
