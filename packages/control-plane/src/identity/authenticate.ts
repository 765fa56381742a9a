import type { AuditSink } from '@airlock/audit'
import { AirlockError, type Principal } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import { findApiKey } from '../store/api-keys.ts'
import type { Store } from '../store/store.ts'
import { parseApiKey, refuseApiKey } from './api-keys.ts'
import { RefusalRecords } from './refusal-records.ts'

/** Turns what a request carries into a principal. Fails closed: anything not understood is `unauthenticated`. */
export interface Authenticator {
  /** `authorization` is the header as it came, or undefined. Throws `AirlockError('unauthenticated')`. */
  authenticate(authorization: string | undefined, requestId: string): Promise<Principal>
}

const BEARER = /^bearer +(\S{1,128})$/i

/** API keys, looked up by id. Why a key was refused is evidence, never an answer. */
export class ApiKeyAuthenticator implements Authenticator {
  readonly #store: Store
  readonly #clock: Clock
  readonly #refusals: RefusalRecords

  constructor(options: { readonly store: Store; readonly audit: AuditSink; readonly clock: Clock }) {
    this.#store = options.store
    this.#clock = options.clock
    this.#refusals = new RefusalRecords(options.audit, options.clock)
  }

  async authenticate(authorization: string | undefined, requestId: string): Promise<Principal> {
    if (authorization === undefined) return this.#refuse('missing', requestId)
    const key = parseApiKey(BEARER.exec(authorization.trim())?.[1] ?? '')
    if (!key) return this.#refuse('malformed', requestId)
    const row = await this.#store.query((db) => findApiKey(db, key.id))
    const refusal = refuseApiKey(key, row, this.#clock.now())
    if (refusal !== undefined || !row) return this.#refuse(refusal ?? 'unknown', requestId, key.id)
    return { actor: `key:${row.id}`, tenant: row.tenant, role: row.role, agents: row.agents }
  }

  #refuse(reason: string, requestId: string, key?: string): never {
    this.#refusals.note({ reason, requestId, ...(key === undefined ? {} : { key }) })
    throw new AirlockError('unauthenticated')
  }
}
