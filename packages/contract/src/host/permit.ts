import { type KeyObject, sign, verify } from 'node:crypto'
import { z } from 'zod'
import { conditions } from '../nouns/decision.ts'
import { doorNames } from './doors-api.ts'
import { AirlockError } from '../errors.ts'
import { permitMounts } from '../nouns/grant.ts'
import { limits } from '../nouns/sandbox.ts'
import { agentId, envVars, id, sandboxId } from '../nouns/scalars.ts'

/** How long a permit is good. A kill makes worthless what was signed before it for as long. */
export const PERMIT_LIFE_MS = 60_000

/** What the control plane decided and signed; the data plane enforces this and nothing else. Good for one creation. */
export const permit = z.strictObject({
  permitId: z.string().regex(/^pmt_[0-9a-z]+$/),
  sandbox: sandboxId,
  /** The only node that may use it. */
  node: z.string().min(1),
  tenant: id,
  agent: agentId,
  generation: z.int(),
  template: z.string(),
  /** What it stands on: `host`, or the name of an image that the node has. */
  image: z.string(),
  tier: z.enum(['standard', 'strict']),
  limits,
  env: envVars,
  /** What of the host it sees; nothing else is mounted. */
  mounts: permitMounts,
  /** Sockets through which it reaches out: these and no others. */
  doors: doorNames,
  /** What the policies ask for on top; the rest of the permit keeps to it. */
  conditions,
  /** Which versions of which policies let it pass. */
  policyVersion: z.string().min(1),
  /** What was set aside for it in the budgets. */
  reservation: z.string().regex(/^rsv_[0-9a-z]+$/),
  /** Epoch milliseconds: the permit must be used before. */
  expiresAt: z.int(),
  /** Epoch milliseconds: the data plane ends the sandbox then, even when no control plane is left to ask. */
  endsAt: z.int(),
})
export type Permit = z.infer<typeof permit>

/** `base64url(payload).base64url(signature)`: the signature is over the very bytes that are parsed. */
export function signPermit(payload: Permit, key: KeyObject): string {
  const bytes = Buffer.from(JSON.stringify(payload))
  return `${bytes.toString('base64url')}.${sign(null, bytes, key).toString('base64url')}`
}

/** Fails closed: a permit that is malformed, forged or expired is an error. */
export function verifyPermit(token: string, key: KeyObject, now: number): Permit {
  const [payload = '', signature = '', ...rest] = token.split('.')
  const bytes = Buffer.from(payload, 'base64url')
  if (rest.length > 0 || !verify(null, bytes, key, Buffer.from(signature, 'base64url')))
    throw new AirlockError('permit_rejected', 'The permit is not signed by our control plane.')
  const parsed = permit.safeParse(JSON.parse(bytes.toString('utf8')))
  if (!parsed.success) throw new AirlockError('permit_rejected', 'The permit is malformed.')
  if (parsed.data.expiresAt <= now) throw new AirlockError('permit_rejected', 'The permit has expired.')
  assertKeepsConditions(parsed.data)
  return parsed.data
}

function assertKeepsConditions({ conditions: asked, tier, mounts }: Permit): void {
  if (asked.tier === 'strict' && tier !== 'strict')
    throw new AirlockError('permit_rejected', 'The permit asks for the strict tier and grants another.')
  if (asked.readOnly && mounts.some(({ mode }) => mode !== 'ro'))
    throw new AirlockError('permit_rejected', 'The permit asks for read-only mounts and grants others.')
}
