import { AirlockError, ANTHROPIC_VERSIONS, anthropicVersion, type AnthropicVersion } from '@airlock/contract'
import type { Headers, Protocol } from '../routes/find-route.ts'

/** All that is read of the headers of a call. Nothing else of them reaches the provider. */
export interface ReadHeaders {
  /** Of Anthropic's protocol. */
  readonly version: AnthropicVersion
}

const DEFAULT_VERSION: AnthropicVersion = '2023-06-01'
const JSON_TYPE = /^application\/json *(?:; *charset *= *"?utf-8"? *)?$/i

/** Headers of a request with a body, or why it is refused. */
export function readHeaders(headers: Headers, protocol: Protocol): ReadHeaders {
  if (!JSON_TYPE.test(single(headers, 'content-type') ?? ''))
    throw new AirlockError('unsupported_media_type', 'The body is not application/json.')
  const encoding = single(headers, 'content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new AirlockError('unsupported_media_type', 'The body is encoded.', {
      hint: 'Send it without content-encoding.',
    })
  return { version: protocol === 'openai' ? DEFAULT_VERSION : readVersion(headers) }
}

function readVersion(headers: Headers): AnthropicVersion {
  const parsed = anthropicVersion.safeParse(single(headers, 'anthropic-version') ?? DEFAULT_VERSION)
  if (parsed.success) return parsed.data
  throw new AirlockError('invalid_request', `"anthropic-version" is not one of ${ANTHROPIC_VERSIONS.join(', ')}.`)
}

/** Node joins repeated headers, or keeps them as a list: joined they are in no list of values. */
function single(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' || value === undefined ? value : value.join(', ')
}
