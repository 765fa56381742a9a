import { AirlockError, isErrorCode } from '@airlock/contract'

/** The error that an event of a build tells. */
export function faultOf(error: {
  readonly code: string
  readonly message: string
  readonly hint: string
}): AirlockError {
  const code = isErrorCode(error.code) ? error.code : 'internal'
  return new AirlockError(code, error.message, { hint: error.hint })
}
