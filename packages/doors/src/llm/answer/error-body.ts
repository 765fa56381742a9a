import { assertNever } from '@airlock/std'
import type { AirlockError } from '@airlock/contract'
import type { Protocol } from '../routes/find-route.ts'

/** An error in the shape that the SDK of a protocol reads. */
export interface ErrorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Of which call an error is the answer, for people who look for it. */
export interface AnsweredCall {
  readonly protocol: Protocol
  readonly callId: string
  /** Micro-dollars of the ceiling, where the call is charged it: each retry would cost as much. */
  readonly charged?: number | null | undefined
}

/** `status` where the provider's own says more than that of the code. */
export function errorAnswer(error: AirlockError, call: AnsweredCall, status = error.status): ErrorAnswer {
  const { callId, charged = null } = call
  const retryAfter = error.retryAfterS === undefined ? {} : { 'retry-after': String(error.retryAfterS) }
  // Both SDKs try again after 408, 409, 429 and 5xx unless this tells them not to.
  const shouldRetry = error.retryable && charged === null ? {} : { 'x-should-retry': 'false' }
  return {
    status,
    headers: { 'content-type': 'application/json', ...idHeaders(callId), ...retryAfter, ...shouldRetry },
    body: JSON.stringify(errorBody(error, call, status)),
  }
}

/** Where each SDK looks for the id of a request. */
export function idHeaders(callId: string): Readonly<Record<string, string>> {
  return { 'x-request-id': callId, 'request-id': callId }
}

export function errorBody(
  error: AirlockError,
  { protocol, callId, charged }: AnsweredCall,
  status = error.status,
): object {
  const message = textOf(error, charged)
  switch (protocol) {
    case 'openai':
      return { error: { message, type: openaiType(status), param: null, code: error.code } }
    case 'anthropic': {
      const details = { error_code: error.code }
      return { type: 'error', error: { type: anthropicType(status), message, details }, request_id: callId }
    }
    default:
      return assertNever(protocol)
  }
}

/** SDKs show one text. That the reader should read it goes without saying. */
export function textOf({ message, hint }: Pick<AirlockError, 'message' | 'hint'>, charged?: number | null): string {
  const text = /[.!?…]$/.test(message) ? message : `${message}.`
  const charge =
    typeof charged === 'number' ? `The call is charged at its ceiling ($${charged / 1e6}), and so is each retry.` : ''
  return [text, charge, hint.replace(/^Read the message: [^.]*\.\s*/, '')].filter((part) => part !== '').join(' ')
}

function openaiType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 402) return 'insufficient_quota'
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status < 500 ? 'invalid_request_error' : 'server_error'
}

const ANTHROPIC_TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
  [504, 'timeout_error'],
])

function anthropicType(status: number): string {
  return ANTHROPIC_TYPES.get(status) ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}
