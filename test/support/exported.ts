import type { AuditRecord } from '@airlock/contract'
import type { Airlock } from '@airlock/sdk'
import { linesOf } from './lines.ts'

/** The evidence of a tenant as it leaves the server, and the records in it. */
export async function exported(
  who: Airlock,
): Promise<{ readonly lines: readonly string[]; readonly records: readonly AuditRecord[] }> {
  const lines = await Array.fromAsync(linesOf(who.audit.export()))
  const records = lines.map((line) => JSON.parse(line) as AuditRecord).filter((one) => !('signature' in one))
  return { lines, records }
}
