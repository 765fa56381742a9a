import type { EvidenceKeeper } from '@airlock/audit'
import { AirlockError, type QuarantinedHead } from '@airlock/contract'
import { findAuditHead } from '../store/audit-heads.ts'
import { findTenant } from '../store/tenants.ts'
import { SYSTEM } from './audit-heads.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/core.ts'

type World = Pick<Context, 'store' | 'node' | 'readiness'> & { readonly evidence: EvidenceKeeper }

/**
 * Sets aside what does not verify of a chain. The route is for keys of the platform only: those whose deeds are recorded do not move
 * the evidence of them. Its record is the statement itself, which the recorder links and signs in one step with what it says.
 */
export async function auditQuarantine(of: World, caller: Caller, tenant: string): Promise<QuarantinedHead> {
  const { store, node, readiness, evidence } = of
  if (tenant !== SYSTEM && !(await store.query((db) => findTenant(db, tenant))))
    throw new AirlockError('tenant_not_found')
  const head = (await store.query((db) => findAuditHead(db, { tenant, node: node.id }))) ?? null
  const statement = await evidence.quarantine(tenant, { by: caller.principal.actor, head })
  readiness.setChain(tenant, 'good')
  return statement
}
