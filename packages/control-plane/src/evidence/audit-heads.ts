import type { EvidenceKeeper, EvidenceReader, Settled } from '@airlock/audit'
import { isAirlockError, type SignedHead } from '@airlock/contract'
import { listAuditHeads, putAuditHead } from '../store/audit-heads.ts'
import { describeNode, isHolder } from '../store/nodes.ts'
import { listTenants } from '../store/tenants.ts'
import type { Context } from '../app/context.ts'

/** The chain of what belongs to no tenant. */
export const SYSTEM = 'system'

type Evidence = Pick<EvidenceReader, 'head'> & Pick<EvidenceKeeper, 'settle'>
type Heads = Pick<Context, 'store' | 'node' | 'readiness' | 'clock' | 'log' | 'audit' | 'webhooks'>

/**
 * Keeps the signed head of every chain of this node in the store too, so that a chain that lost its end, or was written anew, shows
 * at the next start. Then nothing is granted to its tenant until somebody has looked: fails closed. The others go on.
 */
export class AuditHeads {
  readonly #context: Heads
  readonly #evidence: Evidence
  /** By tenant: the number of the head that the store has. */
  readonly #stored = new Map<string, number>()
  /** Chains that could not be judged yet. */
  readonly #waiting = new Set<string>()

  constructor(context: Heads, evidence: Evidence) {
    this.#context = context
    this.#evidence = evidence
  }

  /** Stores the heads as they are now, and says of which tenants. Never fails; readiness tells. */
  async keep(): Promise<ReadonlySet<string>> {
    const { readiness, log } = this.#context
    const kept = new Set<string>()
    try {
      // First the one that there always is: without an answer of the recorder there is no use in asking for all the others.
      for (const tenant of [SYSTEM, ...(await this.#tenants())]) if (await this.#keepOne(tenant)) kept.add(tenant)
      readiness.setEvidence('good')
    } catch (error) {
      log.warn('the heads of the evidence cannot be kept now', { error })
      readiness.setEvidence('unavailable')
    }
    return kept
  }

  /** Whether every chain still holds what was stored. Throws when the recorder does not answer, whatever one chain is like. */
  async check(): Promise<void> {
    const { store, node } = this.#context
    const heads = await store.query((db) => listAuditHeads(db, node.id))
    const { publicKey } = await this.#settle(SYSTEM, heads.get(SYSTEM) ?? null)
    await store.query((db) => describeNode(db, node.id, { auditKey: publicKey }))
    for (const tenant of await this.#tenants()) await this.#settle(tenant, heads.get(tenant) ?? null)
  }

  async #settle(tenant: string, head: SignedHead | null): Promise<Settled> {
    const settled = await this.#evidence.settle(tenant, head)
    if (settled.state === 'waiting') this.#waiting.add(tenant)
    else this.#waiting.delete(tenant)
    if (settled.state === 'broken') this.#setBroken(tenant, settled.reason ?? '')
    return settled
  }

  /** One chain that fails holds up none of the others. */
  async #keepOne(tenant: string): Promise<boolean> {
    const { store, node, readiness, log } = this.#context
    try {
      if (this.#waiting.has(tenant)) {
        const heads = await store.query((db) => listAuditHeads(db, node.id))
        await this.#settle(tenant, heads.get(tenant) ?? null)
      }
      const { head } = await this.#evidence.head(tenant)
      readiness.setChain(tenant, 'good')
      if (head.seq > 0 && this.#stored.get(tenant) !== head.seq) await this.#put(head)
      return true
    } catch (error) {
      if (!isAirlockError(error)) throw error
      if (error.code === 'evidence_broken') this.#setBroken(tenant, error.message)
      else if (tenant === SYSTEM || error.code !== 'evidence_unavailable') throw error
      else log.warn('the head of a chain cannot be kept now', { tenant, error })
      return false
    }
  }

  /** Told once, to everybody who can hear it: the log, the chain of no tenant, and the webhooks of the tenant. */
  #setBroken(tenant: string, reason: string): void {
    const { readiness, log, audit, webhooks } = this.#context
    if (!readiness.setChain(tenant, 'broken')) return
    log.error('the evidence of a tenant is broken: nothing is granted to it', { tenant, reason })
    const payload = { tenant, reason }
    audit.note({ tenant: SYSTEM, actor: 'system', point: 'audit.broken', status: 'failed', payload })
    webhooks.send(tenant, 'alert', { change: 'raised', resource: 'evidence', level: 'critical', reason })
  }

  /** Only as long as we are this node: the head of a copy of the chain would make the chain itself look broken. */
  async #put(head: SignedHead): Promise<void> {
    const { store, node, clock } = this.#context
    const isPut = await store.transaction(async (db) => {
      if (!(await isHolder(db, node))) return false
      await putAuditHead(db, head, { node: node.id, storedAt: clock.now() })
      return true
    })
    if (isPut) this.#stored.set(head.tenant, head.seq)
  }

  async #tenants(): Promise<readonly string[]> {
    return this.#context.store.query(listTenants)
  }
}
