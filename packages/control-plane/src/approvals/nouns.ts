import type { Approval } from '@airlock/contract'
import type { StoredApproval } from '../store/approvals.ts'

/** As everybody sees it: one whose time is over has expired, whether or not that is written yet. */
export function toApproval(row: StoredApproval, now: number): Approval {
  const { id, tenant, requester, agent, sandbox, point, summary, hash, decision, scope, answeredBy, note } = row
  const isOver = (row.state === 'pending' || row.state === 'approved') && row.expiresAt <= now
  return {
    id,
    tenant,
    requester,
    agent,
    sandbox,
    point,
    summary,
    hash,
    decision,
    scope,
    answeredBy,
    note,
    state: isOver ? 'expired' : row.state,
    createdAt: toTime(row.createdAt),
    expiresAt: toTime(row.expiresAt),
    answeredAt: row.answeredAt === null ? null : toTime(row.answeredAt),
    usedAt: row.usedAt === null ? null : toTime(row.usedAt),
  }
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
