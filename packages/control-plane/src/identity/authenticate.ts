import type { AuditSink } from '@airlock/audit'
import { AirlockError, type Principal } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import { findApiKey, type StoredApiKey } from '../store/api-keys.ts'
import type { LatestTimes } from '../store/engine/latest-times.ts'
import type { Store } from '../store/engine/store.ts'
import { findTenant } from '../store/tenants.ts'
import { within } from '../store/engine/within.ts'
import { parseApiKey, refuseApiKey, refuseEnded } from './api-keys.ts'
import type { GuardKeys } from './guard-keys.ts'
import type { Tokens } from './jwt.ts'

/** Turns what a request carries into a principal. Fails closed: anything not understood is `unauthenticated`. */
export interface Authenticator {
  /**
   * `authorization` is the header as it came, or undefined. Throws `AirlockError('unauthenticated')`, or
   * `identity_unavailable` or `store_unavailable` when nobody can tell whether it is good. Where the store does not answer,
   * who wants to take power away is known by what was read of it before.
   */
  authenticate(authorization: string | undefined, requestId: string, purpose?: Purpose): Promise<Principal>
  /** Who a key stands for that was shown before, if it is still good. Throws as `authenticate` does. */
  principalOfKey(keyId: string, requestId: string, purpose: Purpose): Promise<Principal>
}

/** `reduce` is for what only takes power away. */
export type Purpose = 'any' | 'reduce'

interface Request {
  readonly id: string
  readonly purpose: Purpose
}

export interface AuthenticatorOptions {
  readonly store: Store
  readonly audit: AuditSink
  readonly clock: Clock
  /** When each key was last used. */
  readonly keyUses: LatestTimes
  readonly guardKeys: GuardKeys
  /** Null where tokens of others are not accepted. */
  readonly tokens: Tokens | null
  /** Told of everybody who was let in. */
  readonly onSeen: (principal: Principal) => void
}

/** Who takes power away does not wait longer for the store. */
const STORE_MS = 1_000
const BEARER = /^bearer +(\S{1,8192})$/i
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]*$/

/**
 * API keys, looked up by id at every call, so that a revoked one is over at once; and tokens of an identity provider.
 * Why somebody was refused is evidence, never an answer.
 */
export class BearerAuthenticator implements Authenticator {
  readonly #options: AuthenticatorOptions

  constructor(options: AuthenticatorOptions) {
    this.#options = options
  }

  async authenticate(authorization: string | undefined, id: string, purpose: Purpose = 'any'): Promise<Principal> {
    const request = { id, purpose }
    if (authorization === undefined) return this.#refuse('missing', request)
    const text = BEARER.exec(authorization.trim())?.[1] ?? ''
    const principal = TOKEN.test(text) ? await this.#fromToken(text, request) : await this.#fromKey(text, request)
    this.#options.onSeen(principal)
    return principal
  }

  async principalOfKey(keyId: string, id: string, purpose: Purpose): Promise<Principal> {
    const request = { id, purpose }
    const row = await this.#find(keyId, request)
    const refusal = row ? refuseEnded(row, this.#options.clock.now()) : 'unknown'
    if (refusal !== undefined || !row) return this.#refuse(refusal ?? 'unknown', request, { key: keyId })
    const principal = this.#admit(row)
    this.#options.onSeen(principal)
    return principal
  }

  #admit(row: StoredApiKey): Principal {
    const { clock, keyUses } = this.#options
    keyUses.see(row.id, clock.now())
    const { tenant, role, agents, platform } = row
    return { actor: `key:${row.id}`, tenant, role, agents, platform }
  }

  async #fromKey(text: string, request: Request): Promise<Principal> {
    const key = parseApiKey(text)
    if (!key) return this.#refuse('malformed', request)
    const row = await this.#find(key.id, request)
    const refusal = refuseApiKey(key, row, this.#options.clock.now())
    if (refusal !== undefined || !row) return this.#refuse(refusal ?? 'unknown', request, { key: key.id })
    return this.#admit(row)
  }

  async #find(id: string, { purpose }: Request): Promise<StoredApiKey | undefined> {
    const { store, guardKeys } = this.#options
    const asked = store.query((db) => findApiKey(db, id))
    if (purpose === 'any') return asked
    return within(STORE_MS, asked).catch((error: unknown) => {
      const known = guardKeys.find(id)
      // Fails closed: nobody can say whether a key is good that was not among those read before.
      if (!known) throw error
      return known
    })
  }

  /** What a token claims is believed only as far as we have it: the tenant must be one of ours, now. */
  async #fromToken(text: string, request: Request): Promise<Principal> {
    const { store, tokens } = this.#options
    if (!tokens) return this.#refuse('token_not_accepted', request)
    const verdict = await tokens.verify(text)
    if ('refused' in verdict) return this.#refuse(verdict.refused, request, verdict.about)
    const { principal } = verdict
    const asked = store.query((db) => findTenant(db, principal.tenant))
    // Without the store it takes power away from the tenant that it is signed for, be there one or not.
    const tenant = await (request.purpose === 'reduce' ? within(STORE_MS, asked).catch(() => principal.tenant) : asked)
    if (!tenant) return this.#refuse('token_unknown_tenant', request, { subject: principal.actor })
    return principal
  }

  #refuse(reason: string, { id }: Request, about: Readonly<Record<string, string>> = {}): never {
    const payload = { reason, requestId: id, ...about }
    this.#options.audit.note({ tenant: 'system', actor: 'system', point: 'auth.refuse', status: 'denied', payload })
    throw new AirlockError('unauthenticated')
  }
}
