import { type AnthropicVersion, modelRouteOf, type Reservation, type UpstreamKind } from '@airlock/contract'
import type { Key } from '../secret/key.ts'

const DEFAULT_VERSION: AnthropicVersion = '2023-06-01'
const USER_AGENT = 'airlock'

/** Kinds with a base URL without the version of the API, as their SDKs take it. */
const UNVERSIONED: ReadonlySet<UpstreamKind> = new Set(['anthropic', 'litellm'])

export interface Target {
  readonly kind: UpstreamKind
  /** Path of the base URL. */
  readonly path: string
}

/** The path of a route, made from the configuration alone. */
export function pathOf({ kind, path }: Target, route: Reservation['route']): string {
  const base = UNVERSIONED.has(kind) ? `${path.replace(/\/v1$/u, '')}/v1` : path
  return base + modelRouteOf(route).path
}

/** Every header that an upstream gets, but `host`, `connection` and `content-length`. */
// oxlint-disable-next-line max-params -- the parts of one head
export function requestHeaders(
  kind: UpstreamKind,
  key: Key | undefined,
  reservation: Reservation,
  version: AnthropicVersion = DEFAULT_VERSION,
) {
  const isAnthropic = modelRouteOf(reservation.route).shape === 'anthropic'
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    // A compressed answer could hold the key unseen.
    'accept-encoding': 'identity',
    'user-agent': USER_AGENT,
    ...(isAnthropic ? { 'anthropic-version': version } : {}),
    ...(key === undefined ? {} : authorization(kind, key)),
    ...(kind === 'litellm' ? identityHeaders(reservation) : {}),
  }
}

function authorization(kind: UpstreamKind, key: Key): Readonly<Record<string, string>> {
  return kind === 'anthropic' ? { 'x-api-key': key.reveal() } : { authorization: `Bearer ${key.reveal()}` }
}

/** Headers of LiteLLM. The call id is ours: a charge is found again by it alone. */
function identityHeaders({ account, identity, callId }: Reservation): Readonly<Record<string, string>> {
  return {
    'x-litellm-end-user-id': account,
    'x-litellm-spend-logs-metadata': JSON.stringify({ ...identity, call_id: callId }),
  }
}

/** Headers of an answer that are passed on. */
const PASSED = new Set([
  'content-type',
  'retry-after',
  'request-id',
  'x-request-id',
  'x-litellm-call-id',
  'x-litellm-response-cost',
])
const PLAIN = /^[\x20-\x7e]{1,256}$/

/** Headers of an answer by the list. A header that is repeated, too long or not plain text is left out. */
export function passedHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Readonly<Record<string, string>> {
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (PASSED.has(name) && typeof value === 'string' && PLAIN.test(value)) passed[name] = value
  return passed
}
