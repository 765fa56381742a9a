import type { EventReader, EvidenceReader } from '@airlock/audit'
import type { SignedHead } from '@airlock/contract'
import { findAuditHead, putAuditHead } from '../store/audit-heads.ts'
import { describeNode, isHolder } from '../store/nodes.ts'
import { listTenants } from '../store/tenants.ts'
import type { Context } from './context.ts'

/** The chain of what belongs to no tenant. */
const SYSTEM = 'system'

type Evidence = Pick<EvidenceReader, 'head' | 'query'> & Pick<EventReader, 'stats'>
type Heads = Pick<Context, 'store' | 'node' | 'readiness' | 'clock' | 'log'>

/**
 * Keeps the signed head of every chain of this node in the store too, so that a chain that lost its end, or was written anew, shows
 * at the next start. Then nothing is granted until somebody has looked: fails closed.
 */
export class AuditHeads {
  readonly #context: Heads
  readonly #evidence: Evidence

  constructor(context: Heads, evidence: Evidence) {
    this.#context = context
    this.#evidence = evidence
  }

  /** Stores the heads as they are now. Never fails; readiness tells. */
  async keep(): Promise<void> {
    const { readiness, log } = this.#context
    try {
      for (const tenant of await this.#tenants()) {
        const { head } = await this.#evidence.head(tenant)
        if (head.seq > 0) await this.#put(head)
      }
      readiness.setEvidence('good')
    } catch (error) {
      log.warn('the heads of the evidence cannot be kept now', { error })
      readiness.setEvidence('unavailable')
    }
  }

  /** Whether every chain still holds what was stored. Throws when the recorder does not answer. */
  async check(): Promise<void> {
    const { store, node } = this.#context
    const { publicKey } = await this.#evidence.head(SYSTEM)
    await store.query((db) => describeNode(db, node.id, { auditKey: publicKey }))
    for (const tenant of await this.#tenants()) {
      const stored = await store.query((db) => findAuditHead(db, { tenant, node: node.id }))
      if (!stored || (await this.#holds(stored))) continue
      this.#context.log.error('the evidence is not what was signed', { tenant, seq: stored.seq, hash: stored.hash })
      this.#context.readiness.setEvidence('broken')
    }
  }

  /** Only as long as we are this node: the head of a copy of the chain would make the chain itself look broken. */
  async #put(head: SignedHead): Promise<void> {
    const { store, node, clock } = this.#context
    await store.transaction(async (db) => {
      if (await isHolder(db, node)) await putAuditHead(db, head, { node: node.id, storedAt: clock.now() })
    })
  }

  async #holds(stored: SignedHead): Promise<boolean> {
    const { head } = await this.#evidence.head(stored.tenant)
    if (head.seq <= stored.seq) return head.seq === stored.seq && head.hash === stored.hash
    const query = { limit: 1, cursor: String(stored.seq + 1) }
    const [record] = (await this.#evidence.query(stored.tenant, query)).records
    if (record) return record.seq === stored.seq && record.hash === stored.hash
    // Retention signs what it drops, so nothing else can look like it.
    const { dropped } = (await this.#evidence.stats(stored.tenant)).retention
    return dropped !== null && (dropped.seq > stored.seq || dropped.hash === stored.hash)
  }

  async #tenants(): Promise<readonly string[]> {
    return [...(await this.#context.store.query(listTenants)), SYSTEM]
  }
}
