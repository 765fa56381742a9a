import { AirlockError } from '@airlock/contract'
import type { Headers, Protocol } from '../routes/find-route.ts'

/** All that is read of the headers of a call. Nothing else of them reaches the provider. */
export interface ReadHeaders {
  /** Of Anthropic's protocol. */
  readonly version: string
  readonly betas: readonly string[]
}

const VERSIONS: readonly string[] = ['2023-06-01', '2026-10-21']
const DEFAULT_VERSION = '2023-06-01'
const MAX_BETAS = 32
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
  return protocol === 'openai' ? { version: DEFAULT_VERSION, betas: [] } : readAnthropic(headers)
}

function readAnthropic(headers: Headers): ReadHeaders {
  const version = single(headers, 'anthropic-version') ?? DEFAULT_VERSION
  if (!VERSIONS.includes(version))
    throw new AirlockError('invalid_request', `"anthropic-version" is not one of ${VERSIONS.join(', ')}.`)
  const betas = (single(headers, 'anthropic-beta') ?? '').split(',', MAX_BETAS).map((beta) => beta.trim())
  return { version, betas: betas.filter((beta) => beta !== '') }
}

/** Node joins repeated headers, or keeps them as a list: joined they are in no list of values. */
function single(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' || value === undefined ? value : value.join(', ')
}
