import type { EvidenceReader } from '@airlock/audit'
import type { SignedHead } from '@airlock/contract'
import { findAuditHead, putAuditHead } from '../store/audit-heads.ts'
import { listTenants } from '../store/tenants.ts'
import type { Context } from './context.ts'

/** The chain of what belongs to no tenant. */
const SYSTEM = 'system'

/**
 * Keeps the signed head of every chain in the store too, so that a chain that lost its end, or was written anew, shows
 * at the next start. Then nothing is granted until somebody has looked: fails closed.
 */
export class AuditHeads {
  readonly #context: Pick<Context, 'store' | 'readiness' | 'clock' | 'log'>
  readonly #evidence: EvidenceReader

  constructor(context: Pick<Context, 'store' | 'readiness' | 'clock' | 'log'>, evidence: EvidenceReader) {
    this.#context = context
    this.#evidence = evidence
  }

  /** Stores the heads as they are now. Never fails; readiness tells. */
  async keep(): Promise<void> {
    const { store, readiness, clock, log } = this.#context
    try {
      for (const tenant of await this.#tenants()) {
        const { head } = await this.#evidence.head(tenant)
        if (head.seq > 0) await store.query((db) => putAuditHead(db, head, clock.now()))
      }
      readiness.setEvidence('good')
    } catch (error) {
      log.warn('the heads of the evidence cannot be kept now', { error })
      readiness.setEvidence('unavailable')
    }
  }

  /** Whether every chain still holds what was stored. Throws when the recorder does not answer. */
  async check(): Promise<void> {
    for (const tenant of await this.#tenants()) {
      const stored = await this.#context.store.query((db) => findAuditHead(db, tenant))
      if (!stored || (await this.#holds(stored))) continue
      this.#context.log.error('the evidence is not what was signed', { tenant, seq: stored.seq, hash: stored.hash })
      this.#context.readiness.setEvidence('broken')
    }
  }

  async #holds(stored: SignedHead): Promise<boolean> {
    const { head } = await this.#evidence.head(stored.tenant)
    if (head.seq <= stored.seq) return head.seq === stored.seq && head.hash === stored.hash
    const query = { limit: 1, cursor: String(stored.seq + 1) }
    const [record] = (await this.#evidence.query(stored.tenant, query)).records
    return record?.seq === stored.seq && record.hash === stored.hash
  }

  async #tenants(): Promise<readonly string[]> {
    return [...(await this.#context.store.query(listTenants)), SYSTEM]
  }
}
