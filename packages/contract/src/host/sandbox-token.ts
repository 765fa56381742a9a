import { type KeyObject, sign, verify } from 'node:crypto'
import { z } from 'zod'
import { agentId, id, sandboxId } from '../nouns/scalars.ts'

/** What a token lets the program inside ask for, each at the door of its own sandbox. */
export const TOKEN_SCOPES = ['self', 'heartbeat', 'renew', 'ask', 'tool'] as const
export const tokenScope = z.enum(TOKEN_SCOPES)
export type TokenScope = z.infer<typeof tokenScope>

/**
 * Who a sandbox is, signed by the control plane, for use at its own door. It is the only secret inside, is good for
 * minutes, and is compared with the store at every use: what it says gives nothing by itself.
 */
export const sandboxToken = z.strictObject({
  tokenId: z.string().regex(/^tok_[0-9a-z]+$/),
  tenant: id,
  agent: agentId,
  sandbox: sandboxId,
  generation: z.int(),
  scopes: z.array(tokenScope).max(TOKEN_SCOPES.length),
  /** Epoch milliseconds. */
  issuedAt: z.int(),
  expiresAt: z.int(),
})
export type SandboxToken = z.infer<typeof sandboxToken>

/** Why a token opens nothing, by itself; the store knows more reasons. */
export type TokenFault = 'malformed' | 'forged' | 'expired'

const PREFIX = 'alt_'
const SHAPE = /^alt_([\w-]{1,4096})\.([\w-]{86})$/
/** Signed before the payload, so that nothing else that we sign can ever be read as a token. */
const DOMAIN = Buffer.from('airlock sandbox token 1\0')

/** `alt_base64url(payload).base64url(signature)`: the signature is over the very bytes that are parsed. */
export function signSandboxToken(payload: SandboxToken, key: KeyObject): string {
  const bytes = Buffer.from(JSON.stringify(payload))
  const signature = sign(null, Buffer.concat([DOMAIN, bytes]), key)
  return `${PREFIX}${bytes.toString('base64url')}.${signature.toString('base64url')}`
}

/** Fails closed: a fault, or what we once signed and is not over. */
export function verifySandboxToken(text: string, key: KeyObject, now: number): SandboxToken | TokenFault {
  const [, payload, signature] = SHAPE.exec(text) ?? []
  if (payload === undefined || signature === undefined) return 'malformed'
  const bytes = Buffer.from(payload, 'base64url')
  if (!verify(null, Buffer.concat([DOMAIN, bytes]), key, Buffer.from(signature, 'base64url'))) return 'forged'
  const parsed = sandboxToken.safeParse(JSON.parse(bytes.toString('utf8')))
  if (!parsed.success) return 'malformed'
  return parsed.data.expiresAt <= now ? 'expired' : parsed.data
}
