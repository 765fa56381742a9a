import type { EvidenceKeeper, EvidenceReader } from '@airlock/audit'
import {
  AirlockError,
  type AuditChain,
  type AuditQuery,
  type AuditRecord,
  type QuarantinedHead,
} from '@airlock/contract'
import type { Caller, Page } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { findAuditHead, listChains } from '../store/audit-heads.ts'
import { findTenant } from '../store/tenants.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { SYSTEM } from './audit-heads.ts'
import { type Deed, describeError, doRecorded, type Governed } from './evidence.ts'
import { recordRefusal } from './refusals.ts'

type AuditContext = Pick<Context, 'store' | 'node' | 'readiness' | 'audit' | 'clock' | 'guardian'>

/** Evidence of the caller's own tenant; that it was read is evidence too. */
export class Audit {
  readonly #context: AuditContext
  readonly #evidence: EvidenceReader & EvidenceKeeper

  constructor(context: AuditContext, evidence: EvidenceReader & EvidenceKeeper) {
    this.#context = context
    this.#evidence = evidence
  }

  async events(caller: Caller, query: AuditQuery): Promise<Page<AuditRecord>> {
    await this.#assertReader(caller, 'events')
    const reading = await this.#context.guardian.pass(caller, deedOf(caller, 'events'))
    return doRecorded(this.#context, reading, async () => {
      const { records, nextCursor } = await this.#evidence.query(caller.principal.tenant, query)
      return { value: { items: records, nextCursor }, payload: { records: records.length } }
    })
  }

  async export(caller: Caller, signal: AbortSignal): Promise<AsyncIterable<string>> {
    await this.#assertReader(caller, 'export')
    const reading = await this.#context.guardian.pass(caller, deedOf(caller, 'export'))
    await this.#context.audit.require({ ...reading, status: 'requested' })
    return this.#recorded(reading, this.#evidence.export(caller.principal.tenant, signal))
  }

  /** A freshly signed head of the caller's own chain. */
  async head(caller: Caller): ReturnType<EvidenceReader['head']> {
    await this.#assertReader(caller, 'head')
    return this.#evidence.head(caller.principal.tenant)
  }

  /** From the store: nodes that do not answer any more are there too. */
  async chains(caller: Caller): Promise<readonly AuditChain[]> {
    await this.#assertReader(caller, 'chains')
    const chains = await this.#context.store.query((db) => listChains(db, caller.principal.tenant))
    return chains.map(({ node, url, head, auditKey, seenAt }) => ({
      node,
      url,
      head,
      publicKey: auditKey ?? '',
      seenAt: new Date(seenAt).toISOString(),
    }))
  }

  /**
   * Sets aside what does not verify of a chain. The route is for keys of the platform only: those whose deeds are recorded do not
   * move the evidence of them. Its record is the statement itself, which the recorder links and signs in one step with what it says.
   */
  async quarantine(caller: Caller, tenant: string): Promise<QuarantinedHead> {
    const { store, node, readiness } = this.#context
    if (tenant !== SYSTEM && !(await store.query((db) => findTenant(db, tenant))))
      throw new AirlockError('tenant_not_found')
    const head = (await store.query((db) => findAuditHead(db, { tenant, node: node.id }))) ?? null
    const statement = await this.#evidence.quarantine(tenant, { by: caller.principal.actor, head })
    readiness.setChain(tenant, 'good')
    return statement
  }

  async *#recorded(reading: Governed, lines: AsyncIterable<string>): AsyncGenerator<string> {
    const { audit } = this.#context
    let count = 0
    try {
      for await (const line of lines) {
        count++
        yield line
      }
    } catch (error) {
      audit.note({ ...reading, status: 'failed', error: describeError(error) })
      throw error
    }
    audit.note({ ...reading, status: 'done', payload: { ...reading.payload, lines: count } })
  }

  /** Evidence is of a whole tenant, so it is not for who is bound to some of its agents. */
  async #assertReader(caller: Caller, what: string): Promise<void> {
    await recordRefusal(this.#context, deedOf(caller, what), async () => assertUnbound(caller))
  }
}

function deedOf(caller: Caller, what: string): Deed {
  const { tenant, actor } = caller.principal
  return {
    point: 'audit.read',
    tenant,
    agent: null,
    sandbox: null,
    actor,
    payload: { requestId: caller.requestId, what },
  }
}
