import type { AuditSink } from '@airlock/audit'
import { AirlockError, type Principal } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import { findApiKey } from '../store/api-keys.ts'
import type { LatestTimes } from '../store/latest-times.ts'
import type { Store } from '../store/store.ts'
import { findTenant } from '../store/tenants.ts'
import { parseApiKey, refuseApiKey } from './api-keys.ts'
import type { Tokens } from './jwt.ts'
import { RefusalRecords } from './refusal-records.ts'

/** Turns what a request carries into a principal. Fails closed: anything not understood is `unauthenticated`. */
export interface Authenticator {
  /**
   * `authorization` is the header as it came, or undefined. Throws `AirlockError('unauthenticated')`, or
   * `identity_unavailable` when nobody can tell whether it is good.
   */
  authenticate(authorization: string | undefined, requestId: string): Promise<Principal>
}

export interface AuthenticatorOptions {
  readonly store: Store
  readonly audit: AuditSink
  readonly clock: Clock
  /** When each key was last used. */
  readonly keyUses: LatestTimes
  /** Null where tokens of others are not accepted. */
  readonly tokens: Tokens | null
  /** Told of everybody who was let in. */
  readonly onSeen: (principal: Principal) => void
}

const BEARER = /^bearer +(\S{1,8192})$/i
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]*$/

/**
 * API keys, looked up by id at every call, so that a revoked one is over at once; and tokens of an identity provider.
 * Why somebody was refused is evidence, never an answer.
 */
export class BearerAuthenticator implements Authenticator {
  readonly #options: AuthenticatorOptions
  readonly #refusals: RefusalRecords

  constructor(options: AuthenticatorOptions) {
    this.#options = options
    this.#refusals = new RefusalRecords(options.audit, options.clock)
  }

  async authenticate(authorization: string | undefined, requestId: string): Promise<Principal> {
    if (authorization === undefined) return this.#refuse('missing', requestId)
    const text = BEARER.exec(authorization.trim())?.[1] ?? ''
    const principal = TOKEN.test(text) ? await this.#fromToken(text, requestId) : await this.#fromKey(text, requestId)
    this.#options.onSeen(principal)
    return principal
  }

  async #fromKey(text: string, requestId: string): Promise<Principal> {
    const { store, clock, keyUses } = this.#options
    const key = parseApiKey(text)
    if (!key) return this.#refuse('malformed', requestId)
    const row = await store.query((db) => findApiKey(db, key.id))
    const now = clock.now()
    const refusal = refuseApiKey(key, row, now)
    if (refusal !== undefined || !row) return this.#refuse(refusal ?? 'unknown', requestId, { key: key.id })
    keyUses.see(row.id, now)
    const { tenant, role, agents, platform } = row
    return { actor: `key:${row.id}`, tenant, role, agents, platform }
  }

  /** What a token claims is believed only as far as we have it: the tenant must be one of ours, now. */
  async #fromToken(text: string, requestId: string): Promise<Principal> {
    const { store, tokens } = this.#options
    if (!tokens) return this.#refuse('token_not_accepted', requestId)
    const verdict = await tokens.verify(text)
    if ('refused' in verdict) return this.#refuse(verdict.refused, requestId, verdict.about)
    const { principal } = verdict
    const tenant = await store.query((db) => findTenant(db, principal.tenant))
    if (!tenant) return this.#refuse('token_unknown_tenant', requestId, { subject: principal.actor })
    return principal
  }

  #refuse(reason: string, requestId: string, about: Readonly<Record<string, string>> = {}): never {
    this.#refusals.note({ reason, requestId, ...about })
    throw new AirlockError('unauthenticated')
  }
}
