import { type KeyObject, sign, verify } from 'node:crypto'
import { z } from 'zod'
import { AirlockError } from '../errors.ts'
import { agentId, id, sandboxId } from '../nouns/scalars.ts'
import { modelName, modelRoute, upstreamName } from './model-routes.ts'

/** Life of a reservation, from its signature to the request upstream. */
export const RESERVATION_LIFE_MS = 60_000

/** Text that goes into a header as it is. */
const headerText = z.string().regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters')

/** Run, user and trace of a call, in the names of LiteLLM and Langfuse. */
const callIdentity = z.strictObject({
  run_id: headerText,
  attempt: z.int().min(0),
  graph_id: headerText,
  user_id: headerText,
  existing_trace_id: headerText.nullable(),
  session_id: headerText.nullable(),
  trace_user_id: headerText.nullable(),
})
export type CallIdentity = z.infer<typeof callIdentity>

/**
 * The control plane's decision on one call of a model, with the money that it set aside. The process `keys` sends a request
 * upstream against a reservation and nothing else, once, and no more than it says.
 */
export const reservation = z.strictObject({
  callId: z.string().regex(/^cal_[0-9a-hjkmnp-tv-z]{26}$/, 'is not a call id'),
  /** The only node that may use it. */
  node: z.string().min(1).max(128),
  /** The only life of that node's `keys` that may use it: a restart forgets which calls were used. */
  life: z.string().regex(/^[0-9a-z]{26}$/),
  tenant: id,
  agent: agentId,
  /** Null for a caller outside of sandboxes. */
  sandbox: sandboxId.nullable(),
  /** The account that is billed. */
  account: headerText,
  upstream: upstreamName,
  route: modelRoute,
  /** The upstream's name of the model. */
  model: modelName,
  /** Micro-dollars that were set aside. */
  ceiling: z.int().min(0),
  /** Sum over all answers to the request. */
  maxOutputTokens: z.int().min(0),
  identity: callIdentity,
  /** Epoch milliseconds: the request must be sent before. */
  expiresAt: z.int(),
})
export type Reservation = z.infer<typeof reservation>

const PREFIX = 'alr_'
const SHAPE = /^alr_([\w-]{1,8192})\.([\w-]{86})$/
/** Signed before the payload: no permit, token or record can be read as a reservation, whatever key signed it. */
const DOMAIN = Buffer.from('airlock model reservation 1\0')

/** `alr_base64url(payload).base64url(signature)`: the signature is over the very bytes that are parsed. */
export function signReservation(payload: Reservation, key: KeyObject): string {
  const bytes = Buffer.from(JSON.stringify(payload))
  const signature = sign(null, Buffer.concat([DOMAIN, bytes]), key)
  return `${PREFIX}${bytes.toString('base64url')}.${signature.toString('base64url')}`
}

/** Fails closed: a reservation that is malformed, forged, expired or good for too long is `reservation_rejected`. */
export function verifyReservation(text: string, key: KeyObject, now: number): Reservation {
  const [, payload, signature] = SHAPE.exec(text) ?? []
  if (payload === undefined || signature === undefined) throw rejected('is malformed')
  const bytes = Buffer.from(payload, 'base64url')
  if (!verify(null, Buffer.concat([DOMAIN, bytes]), key, Buffer.from(signature, 'base64url')))
    throw rejected('is not signed by our control plane')
  const parsed = reservation.safeParse(JSON.parse(bytes.toString('utf8')))
  if (!parsed.success) throw rejected('is malformed')
  if (parsed.data.expiresAt <= now) throw rejected('has expired')
  if (parsed.data.expiresAt > now + RESERVATION_LIFE_MS) throw rejected('is good for too long')
  return parsed.data
}

function rejected(why: string): AirlockError {
  return new AirlockError('reservation_rejected', `The reservation ${why}.`)
}
