import type { KillReport } from '@airlock/contract'
import type { KillOn } from './kill-list.ts'
import type { StoredKilled } from '../store/kills.ts'

/** A kill and what it did, as callers see it. */
export function toKillReport(kill: KillOn, killed: readonly StoredKilled[], nodesDue: readonly string[]): KillReport {
  const times = killed.flatMap(({ goneMs }) => (goneMs === null ? [] : [goneMs]))
  return {
    id: kill.id,
    scope: kill.scope,
    tenant: kill.tenant === '' ? null : kill.tenant,
    target: kill.target === '' ? (kill.scope === 'tenant' ? kill.tenant : null) : kill.target,
    reason: kill.reason,
    actor: kill.actor,
    at: new Date(kill.at).toISOString(),
    liftedAt: kill.liftedAt === null ? null : new Date(kill.liftedAt).toISOString(),
    liftedBy: kill.liftedBy,
    persisted: kill.isPersisted,
    sandboxes: killed.map(({ sandbox: id, node, frozenMs, goneMs, processes, verified }) => ({
      id,
      node,
      frozenMs,
      goneMs,
      processes,
      verified,
    })),
    slowestMs: times.length === 0 ? null : Math.max(...times),
    unverified: killed.filter(({ verified }) => !verified).map(({ sandbox }) => sandbox),
    nodesDue: [...nodesDue],
  }
}
