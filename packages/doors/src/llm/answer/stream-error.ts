import type { AirlockError } from '@airlock/contract'
import { isRecord } from '../json/is-record.ts'
import type { CallName } from '../routes/find-route.ts'
import { errorBody, textOf } from './error-body.ts'
import { typeStreamError } from './provider-error.ts'

interface ParsedEvent {
  readonly name: string
  readonly value: unknown
}

export interface FailedCall {
  readonly name: CallName
  readonly callId: string
  readonly charged?: number | null | undefined
}

/** The event in place of a provider's error, or undefined for an event that is none. */
export function replaceError({ name, value }: ParsedEvent, call: FailedCall): Buffer | undefined {
  const event = isRecord(value) ? value : {}
  if (call.name === 'responses' && event['type'] === 'response.failed') return writeFailedResponse(event)
  const hasError = event['error'] !== undefined && event['error'] !== null
  const isError = name === 'error' || event['type'] === 'error' || (call.name === 'chat' && hasError)
  if (!isError) return undefined
  return writeStreamError(typeStreamError(hasError ? event['error'] : event), call, event['sequence_number'])
}

/** How an answer that has begun ends with an error: the SDK of its protocol throws it. */
export function writeStreamError(
  error: AirlockError,
  { name, callId, charged }: FailedCall,
  sequence_number?: unknown,
): Buffer {
  if (name === 'messages') return write('error', errorBody(error, { protocol: 'anthropic', callId, charged }))
  if (name === 'responses')
    return write('error', { type: 'error', ...responseError(error, charged), param: null, sequence_number })
  return write(undefined, errorBody(error, { protocol: 'openai', callId, charged }))
}

/** The error of a response, where codes are a closed list. */
export function responseError(error: AirlockError, charged?: number | null): object {
  const code = error.code === 'upstream_busy' ? 'rate_limit_exceeded' : 'server_error'
  return { code, message: textOf(error, charged) }
}

function writeFailedResponse(event: Readonly<Record<string, unknown>>): Buffer {
  const response = isRecord(event['response']) ? event['response'] : {}
  const error = responseError(typeStreamError(response['error']))
  return write('response.failed', { ...event, response: { ...response, error } })
}

function write(name: string | undefined, data: object): Buffer {
  return Buffer.from(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`)
}
