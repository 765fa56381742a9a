import { type KeyObject, sign, verify } from 'node:crypto'
import { z } from 'zod'
import { AirlockError } from '../errors.ts'
import { agentId, id, name, sandboxId } from '../nouns/scalars.ts'
import { sealedText, serviceOrigin } from '../nouns/tools/secret.ts'
import { TOOL_BOUNDS, TOOL_METHODS, toolName } from '../nouns/tools/tool.ts'

/** From the signature to the request. A secret that was replaced or removed starts no call after it. */
export const ORDER_LIFE_MS = 1_000

/** A secret, where it goes, and before what text. */
const injected = z.strictObject({
  name,
  sealed: sealedText,
  /** Origin that the client sealed it for: `keys` compares it with that of the call. */
  origin: serviceOrigin,
  header: z.string(),
  prefix: z.string(),
  basicUser: z.string().nullable(),
})

/**
 * The control plane's decision on one call of a tool: the whole request, but for the value of the secret. The process `keys`
 * sends exactly this, once.
 */
export const toolOrder = z.strictObject({
  callId: z.string().regex(/^tcl_[0-9a-hjkmnp-tv-z]{26}$/, 'is not the id of a call'),
  node: z.string().min(1).max(128),
  /** The only life of that node's `keys` that may send it. */
  life: z.string().regex(/^[0-9a-z]{26}$/),
  tenant: id,
  agent: agentId,
  sandbox: sandboxId,
  tool: toolName,
  origin: serviceOrigin,
  method: z.enum(TOOL_METHODS),
  /** Path and query, encoded. */
  target: z.string().startsWith('/').max(100_000),
  headers: z.record(z.string(), z.string()),
  /** SHA-256 of the body in hexadecimal; null without one. */
  bodySha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
  secret: injected.nullable(),
  maxAnswerBytes: z.int().min(1).max(TOOL_BOUNDS.answerBytes),
  timeoutMs: z.int().min(1).max(TOOL_BOUNDS.timeoutMs),
  /** Epoch milliseconds: the request must be sent before. */
  expiresAt: z.int(),
})
export type ToolOrder = z.infer<typeof toolOrder>

const SHAPE = /^alo_([\w-]{1,262144})\.([\w-]{86})$/
/** Signed before the payload: no reservation, permit, token or record can be read as an order. */
const DOMAIN = Buffer.from('airlock tool order 1\0')

/** `alo_base64url(payload).base64url(signature)`: the signature is over the very bytes that are parsed. */
export function signToolOrder(payload: ToolOrder, key: KeyObject): string {
  const bytes = Buffer.from(JSON.stringify(payload))
  const signature = sign(null, Buffer.concat([DOMAIN, bytes]), key)
  return `alo_${bytes.toString('base64url')}.${signature.toString('base64url')}`
}

/** Fails closed: an order that is malformed, forged, expired or good for too long is `reservation_rejected`. */
export function verifyToolOrder(text: string, key: KeyObject, now: number): ToolOrder {
  const [, payload, signature] = SHAPE.exec(text) ?? []
  if (payload === undefined || signature === undefined) throw rejected('is malformed')
  const bytes = Buffer.from(payload, 'base64url')
  if (!verify(null, Buffer.concat([DOMAIN, bytes]), key, Buffer.from(signature, 'base64url')))
    throw rejected('is not signed by our control plane')
  const parsed = toolOrder.safeParse(JSON.parse(bytes.toString('utf8')))
  if (!parsed.success) throw rejected('is malformed')
  if (parsed.data.expiresAt <= now) throw rejected('has expired')
  if (parsed.data.expiresAt > now + ORDER_LIFE_MS) throw rejected('is good for too long')
  return parsed.data
}

function rejected(why: string): AirlockError {
  return new AirlockError('reservation_rejected', `The order of the call ${why}.`)
}
