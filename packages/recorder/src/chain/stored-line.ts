import { canonical, canonicalFields, hashText, joinFields, macOf } from '@airlock/audit'
import { auditRecord, type AuditRecord, signedHead, type SignedHead } from '@airlock/contract'
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'

/** A record as it is on disk. `mac` and `rid` are ours alone: they are not hashed and never exported. */
const storedRecord = auditRecord.extend({ mac: z.string(), rid: z.string() })

export type StoredLine =
  | { readonly type: 'record'; readonly record: AuditRecord; readonly mac: string; readonly rid: string }
  | { readonly type: 'head'; readonly head: SignedHead }

/** Gives a record its hash, and its line on disk. Each value is turned into text once for both. */
export function sealRecord(
  unsealed: Omit<AuditRecord, 'hash'>,
  options: { readonly rid: string; readonly macKey: KeyObject },
): { readonly record: AuditRecord; readonly line: string } {
  const fields = canonicalFields(unsealed)
  const hash = hashText(joinFields(fields))
  const ours = canonicalFields({ hash, mac: macOf(options.macKey, hash), rid: options.rid })
  return { record: { ...unsealed, hash }, line: joinFields([...fields, ...ours]) }
}

/** Undefined when the line is neither a record nor a head. */
export function parseStored(line: string): StoredLine | undefined {
  const value = parseJson(line)
  if (typeof value !== 'object' || value === null || !('mac' in value)) {
    const head = signedHead.safeParse(value)
    return head.success ? { type: 'head', head: head.data } : undefined
  }
  const stored = storedRecord.safeParse(value)
  if (!stored.success) return undefined
  const { mac, rid, ...record } = stored.data
  return { type: 'record', record, mac, rid }
}

/** Whether the line may be one of ours, perhaps changed. Any other is no evidence. */
export function isOurs(line: string): boolean {
  const value = parseJson(line)
  return typeof value === 'object' && value !== null && 'hash' in value
}

/** The line as others may see it. A line that is damaged is passed on as it is, for a verifier to name. */
export function exportLine(line: string): string {
  const value = parseJson(line)
  if (typeof value !== 'object' || value === null || !('mac' in value)) return line
  const { mac: _mac, rid: _rid, ...record } = { rid: '', ...value }
  return canonical(record)
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    // Damaged: no caller takes undefined for a record.
    return undefined
  }
}
