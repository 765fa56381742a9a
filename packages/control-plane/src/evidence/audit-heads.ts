import type { EvidenceKeeper, EvidenceReader, Settled } from '@airlock/audit'
import { AirlockError, isAirlockError, type SignedHead } from '@airlock/contract'
import { listAuditHeads, putAuditHead } from '../store/audit-heads.ts'
import { describeNode, isHolder } from '../store/nodes.ts'
import { listTenants } from '../store/tenants.ts'
import type { Context } from '../app/context.ts'

/** Restarts of the recorder that one round follows. */
const LIVES = 3
/** The chain of what belongs to no tenant. */
export const SYSTEM = 'system'

type Evidence = Pick<EvidenceReader, 'head'> & Pick<EvidenceKeeper, 'settle' | 'lives'>
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
  /** The life of the recorder in which all others were judged. */
  #life = 0

  constructor(context: Heads, evidence: Evidence) {
    this.#context = context
    this.#evidence = evidence
  }

  /** Stores the heads as they are now, and says of which tenants. Never fails; readiness tells. */
  async keep(): Promise<ReadonlySet<string>> {
    const { readiness, log } = this.#context
    try {
      // First the one that there always is: without an answer of the recorder there is no use in asking for all the others.
      const tenants = [SYSTEM, ...(await this.#tenants())]
      for (let tries = 0; tries < LIVES; tries++) {
        await this.#judgeAgain(tenants)
        const kept = await this.#keepAll(tenants)
        if (!this.#isJudged) continue
        readiness.setEvidence('good')
        return kept
      }
      throw new AirlockError('evidence_unavailable', 'The recorder is restarted again and again.')
    } catch (error) {
      log.warn('the heads of the evidence cannot be kept now', { error })
      // Without the store nothing is known of the evidence; the lease tells of the store.
      if (!isAirlockError(error) || error.code !== 'store_unavailable') readiness.setEvidence('unavailable')
      return new Set()
    }
  }

  /** Whether every chain still holds what was stored. Throws when the recorder does not answer, whatever one chain is like. */
  async check(): Promise<void> {
    const { store, node } = this.#context
    const heads = await store.query((db) => listAuditHeads(db, node.id))
    const { publicKey } = await this.#settle(SYSTEM, heads.get(SYSTEM) ?? null)
    const { lives } = this.#evidence
    await store.query((db) => describeNode(db, node.id, { auditKey: publicKey }))
    for (const tenant of await this.#tenants()) await this.#settle(tenant, heads.get(tenant) ?? null)
    this.#life = lives
  }

  /** Whether the recorder that answered last is the one that was asked about every chain. */
  get #isJudged(): boolean {
    return this.#evidence.lives === this.#life
  }

  /** A recorder that was restarted alone knows no more than its files: it is asked about every chain, as at our start. */
  async #judgeAgain(tenants: readonly string[]): Promise<void> {
    const { store, node } = this.#context
    const { lives } = this.#evidence
    const due = this.#isJudged ? tenants.filter((tenant) => this.#waiting.has(tenant)) : tenants
    if (due.length === 0) return
    const heads = await store.query((db) => listAuditHeads(db, node.id))
    for (const tenant of due) await this.#settle(tenant, heads.get(tenant) ?? null)
    this.#life = lives
  }

  async #settle(tenant: string, head: SignedHead | null): Promise<Settled> {
    const settled = await this.#evidence.settle(tenant, head)
    if (settled.state === 'waiting') this.#setWaiting(tenant, settled.reason ?? '')
    else this.#waiting.delete(tenant)
    if (settled.state === 'broken') this.#setBroken(tenant, settled.reason ?? '')
    return settled
  }

  async #keepAll(tenants: readonly string[]): Promise<ReadonlySet<string>> {
    const kept = new Set<string>()
    for (const tenant of tenants) {
      if (await this.#keepOne(tenant)) kept.add(tenant)
      if (!this.#isJudged) break
    }
    return kept
  }

  /** One chain that fails holds up none of the others. */
  async #keepOne(tenant: string): Promise<boolean> {
    const { readiness } = this.#context
    try {
      const { head } = await this.#evidence.head(tenant)
      // The head of a chain that nobody judged would hide what the chain has lost.
      if (!this.#isJudged) return false
      readiness.setChain(tenant, 'good')
      if (head.seq > 0 && this.#stored.get(tenant) !== head.seq) await this.#put(head)
      return true
    } catch (error) {
      if (!isAirlockError(error)) throw error
      if (!this.#isJudged) return false
      if (error.code === 'evidence_unavailable') this.#waiting.add(tenant)
      if (error.code === 'evidence_broken') this.#setBroken(tenant, error.message)
      else if (tenant === SYSTEM || error.code !== 'evidence_unavailable') throw error
      else this.#setWaiting(tenant, error.message)
      return false
    }
  }

  /** Nothing is granted to the tenant until its chain is judged, which is tried with every look. */
  #setWaiting(tenant: string, reason: string): void {
    const { readiness, log } = this.#context
    this.#waiting.add(tenant)
    if (readiness.setChain(tenant, 'waiting'))
      log.warn('the evidence of a tenant is being checked: nothing is granted to it meanwhile', { tenant, reason })
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
