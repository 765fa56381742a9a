import type { GuestErrorCode } from '@airlock/contract/guest'
import { GuestFailure, toGuestError } from '../../failure.ts'

/** What the agent answers when it does not do what it was asked; the codes are those of the API where it has one. */
const FAULTS = {
  invalid_request: { status: 400, retryable: false, hint: 'Read the message: it names the field.' },
  unauthenticated: { status: 401, retryable: false, hint: 'Send the token of the session as "X-Session-Token".' },
  route_not_found: { status: 404, retryable: false, hint: 'See docs/session-agent.md for what there is.' },
  session_not_found: { status: 404, retryable: false, hint: 'Register the session first.' },
  runtime_mismatch: { status: 409, retryable: false, hint: 'The runtime belongs to the session: open another one.' },
  step_conflict: { status: 409, retryable: false, hint: 'Use another step id for other code.' },
  result_dropped: { status: 410, retryable: false, hint: 'It ran once, and its result is no longer kept.' },
  body_too_large: { status: 413, retryable: false, hint: 'Send less.' },
  runtime_unavailable: { status: 422, retryable: false, hint: 'Use an image that has this interpreter.' },
  too_many_sessions: { status: 429, retryable: true, hint: 'Terminate some.' },
  too_many_steps: { status: 429, retryable: true, hint: 'Wait until some end, or open another session.' },
  internal: { status: 500, retryable: false, hint: 'Look at the log of the agent.' },
  runtime_crashed: { status: 503, retryable: false, hint: 'Open another session.' },
} as const
export type FaultCode = keyof typeof FAULTS

export class AgentFault extends Error {
  readonly code: FaultCode

  constructor(code: FaultCode, message: string) {
    super(message)
    this.name = 'AgentFault'
    this.code = code
  }
}

export interface FaultAnswer {
  readonly status: number
  readonly body: {
    readonly error: {
      readonly code: FaultCode
      readonly message: string
      readonly hint: string
      readonly retryable: boolean
    }
  }
}

export function toFaultAnswer(error: unknown): FaultAnswer {
  const { code, message } = error instanceof AgentFault ? error : toFault(error)
  const { status, retryable, hint } = FAULTS[code]
  return { status, body: { error: { code, message, hint, retryable } } }
}

/** Of what the session engine throws, what a caller can have caused; the rest is ours. */
function toFault(error: unknown): AgentFault {
  const { code, message } = toGuestError(error)
  const known = BY_GUEST_CODE[code]
  // Nothing of our own insides is told.
  return known ? new AgentFault(known, message) : new AgentFault('internal', 'the agent failed')
}

const BY_GUEST_CODE: Readonly<Partial<Record<GuestErrorCode, FaultCode>>> = {
  invalid_request: 'invalid_request',
  invalid_path: 'invalid_request',
  file_not_found: 'invalid_request',
  not_a_directory: 'invalid_request',
  permission_denied: 'invalid_request',
  session_not_found: 'session_not_found',
  too_many_sessions: 'too_many_sessions',
  too_many_steps: 'too_many_steps',
  runtime_unavailable: 'runtime_unavailable',
  runtime_crashed: 'runtime_crashed',
}

export function isGone(error: unknown): boolean {
  return error instanceof GuestFailure && error.code === 'session_not_found'
}
