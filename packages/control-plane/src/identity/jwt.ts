import { createHash } from 'node:crypto'
import { agentId, BOUNDS, id, isAirlockError, type Principal, type Role, role, ROLES } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import type { KeySource } from './jwks.ts'

export type Verdict =
  | { readonly principal: Principal }
  | { readonly refused: string; readonly about?: Readonly<Record<string, string>> }

/** Tokens that an identity provider signed. */
export interface Tokens {
  /** Throws `identity_unavailable` when the keys to verify it cannot be had. */
  verify(token: string): Promise<Verdict>
}

export interface TokenRules {
  readonly issuer: string
  readonly audience: string
  readonly tenantClaim: string
  readonly roleClaim: string
  readonly agentsClaim: string
  readonly clockToleranceS: number
}

/** The algorithm of a token chooses who could have signed it, so a public key is never taken for a secret. */
const PUBLIC = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')
const SECRET = ['HS256']
const MOST_CACHED = 10_000
const LONGEST_KID = 256

interface Cached {
  readonly principal: Principal
  readonly expiresAt: number
  readonly version: number
}

interface Options {
  readonly rules: TokenRules
  readonly clock: Clock
  /** Null when nothing is signed with public keys. */
  readonly keys: KeySource | null
  /** Null when nothing is signed with a secret. */
  readonly secret: string | null
}

/**
 * Signature, algorithm, issuer, audience and times of a token, and then what it claims. A token that was good is remembered by
 * its hash until it expires or the keys of the issuer change.
 */
export class SignedTokens implements Tokens {
  readonly #options: Options
  readonly #secret: Uint8Array | null
  readonly #cache = new Map<string, Cached>()

  constructor(options: Options) {
    this.#options = options
    this.#secret = options.secret === null ? null : new TextEncoder().encode(options.secret)
  }

  async verify(token: string): Promise<Verdict> {
    const header = readHeader(token)
    if (!header) return { refused: 'token_malformed' }
    const signer = await this.#signer(header)
    if (!signer) return { refused: 'token_algorithm', about: { alg: header.alg } }
    const hash = createHash('sha256').update(token).digest('hex')
    const known = this.#cache.get(hash)
    if (known && known.version === signer.version && known.expiresAt > this.#options.clock.now())
      return { principal: known.principal }
    this.#cache.delete(hash)
    return this.#verifyFresh(token, signer, hash)
  }

  async #verifyFresh(token: string, signer: Signer, hash: string): Promise<Verdict> {
    const { rules, clock } = this.#options
    try {
      const { payload } = await signer.verify(token, {
        algorithms: signer.algorithms,
        issuer: rules.issuer,
        audience: rules.audience,
        clockTolerance: rules.clockToleranceS,
        currentDate: new Date(clock.now()),
        requiredClaims: ['exp', 'sub'],
      })
      const principal = principalOf(payload, rules)
      if (!principal) return { refused: 'token_claims', about: { subject: subjectOf(payload) } }
      // Not with the tolerance: that is for what is verified again.
      this.#remember(hash, { principal, expiresAt: (payload.exp ?? 0) * 1000, version: signer.version })
      return { principal }
    } catch (error) {
      if (isAirlockError(error)) throw error
      return { refused: reasonOf(error) }
    }
  }

  async #signer(header: Header): Promise<Signer | undefined> {
    const { keys } = this.#options
    const secret = this.#secret
    if (secret && SECRET.includes(header.alg))
      return { version: 0, algorithms: SECRET, verify: async (token, options) => jwtVerify(token, secret, options) }
    if (!keys || !PUBLIC.includes(header.alg)) return undefined
    const { version, getKey } = await keys.current(header.kid)
    return { version, algorithms: PUBLIC, verify: async (token, options) => jwtVerify(token, getKey, options) }
  }

  #remember(hash: string, cached: Cached): void {
    const [oldest] = this.#cache.keys()
    if (this.#cache.size >= MOST_CACHED && oldest !== undefined) this.#cache.delete(oldest)
    this.#cache.set(hash, cached)
  }
}

interface Signer {
  readonly version: number
  readonly algorithms: string[]
  verify(
    token: string,
    options: NonNullable<Parameters<typeof jwtVerify>[2]>,
  ): Promise<{ readonly payload: JWTPayload }>
}

interface Header {
  readonly alg: string
  readonly kid: string | undefined
}

function readHeader(token: string): Header | undefined {
  try {
    const { alg, kid } = decodeProtectedHeader(token)
    if (alg === undefined || (kid !== undefined && kid.length > LONGEST_KID)) return undefined
    return { alg: alg.slice(0, 32), kid }
  } catch {
    // Not base64url, or not JSON: nothing that could be verified.
    return undefined
  }
}

const subject = z.string().regex(/^[\x21-\x7e]{1,128}$/)
const agents = z.union([agentId.transform((one) => [one]), z.array(agentId).min(1).max(BOUNDS.keyAgents)])

/** Fails closed: a tenant, role or agents that we do not understand are nobody's. Tokens are never of the platform. */
function principalOf(payload: JWTPayload, rules: TokenRules): Principal | undefined {
  const sub = subject.safeParse(payload.sub)
  const tenant = id.safeParse(payload[rules.tenantClaim])
  const as = roleOf(payload[rules.roleClaim])
  const claimed = payload[rules.agentsClaim]
  const bound = claimed === undefined ? undefined : agents.safeParse(claimed)
  if (!sub.success || !tenant.success || !as || bound?.success === false) return undefined
  return { actor: `jwt:${sub.data}`, tenant: tenant.data, role: as, agents: bound?.data ?? null, platform: false }
}

/** Providers list what somebody is for all of their programs: exactly one of it must be a role of ours. */
function roleOf(claimed: unknown): Role | undefined {
  const given: readonly unknown[] = Array.isArray(claimed) ? claimed : [claimed]
  const ours = ROLES.filter((one) => given.includes(one))
  return ours.length === 1 ? role.parse(ours[0]) : undefined
}

function subjectOf(payload: JWTPayload): string {
  return subject.safeParse(payload.sub).data ?? ''
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'token_expired'
  if (error instanceof errors.JWTClaimValidationFailed) return `token_${error.claim}`.slice(0, 64)
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'token_signature'
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return 'token_unknown_key'
  return 'token_invalid'
}
