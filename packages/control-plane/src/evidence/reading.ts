import type { EvidenceReader } from '@airlock/audit'
import type { AuditChain, AuditQuery, AuditRecord } from '@airlock/contract'
import { listChains } from '../store/audit-heads.ts'
import type { Context } from '../app/context.ts'
import type { Caller, Page } from '../app/core.ts'
import { type Deed, describeError, doRecorded, type Governed } from './evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { recordRefusal } from './refusals.ts'

type Reading = Pick<Context, 'audit' | 'clock' | 'guardian'> & { readonly evidence: EvidenceReader }

/** Evidence of the caller's own tenant; that it was read is evidence too. */
export async function auditEvents(of: Reading, caller: Caller, query: AuditQuery): Promise<Page<AuditRecord>> {
  const { tenant } = caller.principal
  await assertReader(of, caller, 'events')
  const reading = await of.guardian.pass(caller, deed(caller, { what: 'events' }))
  return doRecorded(of, reading, async () => {
    const { records, nextCursor } = await of.evidence.query(tenant, query)
    return { value: { items: records, nextCursor }, payload: { records: records.length } }
  })
}

/** A freshly signed head of the caller's own chain. */
export async function auditHead(
  of: Pick<Reading, 'evidence' | 'audit'>,
  caller: Caller,
): ReturnType<EvidenceReader['head']> {
  await assertReader(of, caller, 'head')
  return of.evidence.head(caller.principal.tenant)
}

/** From the store: nodes that do not answer any more are there too. */
export async function auditChains(
  of: Pick<Context, 'store' | 'audit'>,
  caller: Caller,
): Promise<readonly AuditChain[]> {
  await assertReader(of, caller, 'chains')
  const chains = await of.store.query((db) => listChains(db, caller.principal.tenant))
  return chains.map(({ node, url, head, auditKey, seenAt }) => ({
    node,
    url,
    head,
    publicKey: auditKey ?? '',
    seenAt: new Date(seenAt).toISOString(),
  }))
}

export async function auditExport(of: Reading, caller: Caller, signal: AbortSignal): Promise<AsyncIterable<string>> {
  await assertReader(of, caller, 'export')
  const reading = await of.guardian.pass(caller, deed(caller, { what: 'export' }))
  await of.audit.require({ ...reading, status: 'requested' })
  return recordedLines(of, reading, of.evidence.export(caller.principal.tenant, signal))
}

async function* recordedLines(of: Reading, reading: Governed, lines: AsyncIterable<string>): AsyncGenerator<string> {
  let count = 0
  try {
    for await (const line of lines) {
      count++
      yield line
    }
  } catch (error) {
    of.audit.note({ ...reading, status: 'failed', error: describeError(error) })
    throw error
  }
  of.audit.note({ ...reading, status: 'done', payload: { ...reading.payload, lines: count } })
}

/** Evidence is of a whole tenant, so it is not for who is bound to some of its agents. */
async function assertReader(of: Pick<Context, 'audit'>, caller: Caller, what: string): Promise<void> {
  await recordRefusal(of, deed(caller, { what }), async () => assertUnbound(caller))
}

function deed(caller: Caller, payload: { readonly what: string }): Deed {
  const { tenant, actor } = caller.principal
  return {
    point: 'audit.read',
    tenant,
    agent: null,
    sandbox: null,
    actor,
    payload: { requestId: caller.requestId, ...payload },
  }
}
