import { AirlockError } from '@airlock/contract'
import { decodeText, parseJson } from '@airlock/wire'
import { findJsonFault } from './find-json-fault.ts'

/** A body as JSON that every reader reads alike, or `invalid_request`. */
export function parseBody(bytes: Buffer): unknown {
  const text = decodeText(bytes)
  const fault = findJsonFault(text)
  if (fault !== undefined) throw new AirlockError('invalid_request', fault)
  return parseJson(text)
}
