import { createHmac, hash, type KeyObject } from 'node:crypto'
import type { AuditRecord } from '@airlock/contract'
import { canonical } from './canonical.ts'

/** What the first record of a chain has as `prev`. */
export const GENESIS = '0'.repeat(64)

/** Where a chain is: its last record. `seq` 0 and GENESIS when it is empty. */
export interface ChainPosition {
  readonly seq: number
  readonly hash: string
}

/** SHA-256 over the canonical record, which includes `prev`: so each hash vouches for everything before it. */
export function hashRecord(record: Omit<AuditRecord, 'hash'>): string {
  return hashText(canonical(record))
}

/** The same of a record whose text is known. */
export function hashText(text: string): string {
  return hash('sha256', text, 'hex')
}

/** Protects a record on disk until a signed head covers it. Never exported. */
export function macOf(key: KeyObject, recordHash: string): string {
  return createHmac('sha256', key).update(recordHash).digest('hex')
}
