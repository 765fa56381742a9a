import type { KeyObject } from 'node:crypto'
import {
  auditRecord,
  type AuditRecord,
  brokenHead,
  type BrokenHead,
  droppedHead,
  type DroppedHead,
  isAirlockError,
  quarantinedHead,
  type QuarantinedHead,
  signedHead,
  type SignedHead,
} from '@airlock/contract'
import { canonical } from './canonical.ts'
import { type ChainPosition, GENESIS, hashRecord, hashText } from './chain.ts'
import { isSignedBy, parsePublicKey } from './head.ts'

const MAX_LINE = 1024 * 1024

type Line = AuditRecord | SignedHead | DroppedHead | BrokenHead | QuarantinedHead

export interface Verified {
  readonly ok: true
  readonly tenant: string
  readonly records: number
  readonly firstSeq: number
  readonly lastSeq: number
  readonly heads: number
  readonly lastHead: SignedHead
  /** Retention dropped all up to it; null when the chain is whole. */
  readonly dropped: DroppedHead | null
  /** It ends where the server ended it. If not, it was cut off behind a signed head, or an earlier version made it. */
  readonly isWhole: boolean
  /** What did not verify and was set aside, oldest first: records are missing there, and the server signed that. */
  readonly quarantined: readonly QuarantinedHead[]
  /** Whether the given head is of this chain; `dropped` or `quarantined` when what it vouches for is gone, so that it proves nothing. */
  readonly head: 'none' | 'holds' | 'dropped' | 'quarantined'
}

/** The first record that cannot be trusted, or is missing, and why. `line` counts from 1. */
export interface Broken {
  readonly ok: false
  readonly brokenAt: number
  readonly line: number
  readonly reason: string
}

/**
 * Verifies an export with nothing but the public key. An export must begin with the first record, or with the signed
 * statement that all before were dropped by retention, and end with a signed head. An export cut off right after an earlier head still verifies, and is not `isWhole`. That the chain itself was cut
 * off before the export, or rewritten by someone who holds the key, shows only with a head that was kept elsewhere (`head`).
 */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  options: { readonly publicKey: string; readonly head?: SignedHead | undefined },
): Promise<Verified | Broken> {
  const { head } = options
  const key = parsePublicKey(options.publicKey)
  if (head && !isSignedBy(head, key))
    return { ok: false, brokenAt: head.seq, line: 0, reason: 'the given head is not signed by this key' }
  const verifier = new ChainVerifier(key, { head })
  for await (const line of lines) {
    const broken = verifier.push(line)
    if (broken) return broken
  }
  return verifier.finish()
}

/** Follows a chain line by line in constant memory. After the first break it must not be used further. */
export class ChainVerifier {
  readonly #key: KeyObject
  readonly #expected: SignedHead | undefined
  #tenant: string | undefined
  #at: ChainPosition
  #line = 0
  #records = 0
  #heads = 0
  #lastHead: SignedHead | undefined
  #dropped: DroppedHead | undefined
  readonly #quarantined: QuarantinedHead[] = []

  constructor(key: KeyObject, options: { readonly head?: SignedHead | undefined; readonly from?: ChainPosition } = {}) {
    this.#key = key
    this.#expected = options.head
    this.#at = options.from ?? { seq: 0, hash: GENESIS }
  }

  /** The last record that was found good. */
  get position(): ChainPosition {
    return this.#at
  }

  push(line: string): Broken | undefined {
    this.#line += 1
    if (line === '') return undefined
    if (this.#lastHead?.end === true) return this.#broken(this.#at.seq + 1, 'the export goes on behind its end')
    const value = parseLine(line)
    if (!value) return this.#broken(this.#at.seq + 1, 'the line is neither a record nor a head')
    this.#tenant ??= this.#expected?.tenant ?? value.tenant
    if (value.tenant !== this.#tenant)
      return this.#broken(this.#at.seq + 1, `the line belongs to another tenant, ${value.tenant}`)
    return 'signature' in value ? this.#pushSigned(value, line) : this.#pushRecord(value)
  }

  finish(): Verified | Broken {
    const missing = this.#at.seq + 1
    if (!this.#lastHead || this.#lastHead.seq !== this.#at.seq)
      return this.#broken(missing, 'the log is truncated: it does not end with a signed head')
    const expected = this.#expected
    if (expected && expected.seq > this.#at.seq)
      return this.#broken(
        missing,
        `the log was cut off after record ${this.#at.seq}: the given head is at ${expected.seq}`,
      )
    return {
      ok: true,
      tenant: this.#lastHead.tenant,
      records: this.#records,
      firstSeq: this.#records === 0 ? 0 : (this.#dropped?.seq ?? 0) + 1,
      lastSeq: this.#at.seq,
      heads: this.#heads,
      lastHead: this.#lastHead,
      isWhole: this.#lastHead.end === true,
      dropped: this.#dropped ?? null,
      quarantined: this.#quarantined,
      head: this.#headState(),
    }
  }

  #headState(): Verified['head'] {
    if (!this.#expected) return 'none'
    const { seq } = this.#expected
    if (seq < (this.#dropped?.seq ?? 0)) return 'dropped'
    return this.#quarantined.some((one) => one.seq < seq && seq <= one.quarantined.to) ? 'quarantined' : 'holds'
  }

  #pushSigned(value: Exclude<Line, AuditRecord>, line: string): Broken | undefined {
    if ('dropped' in value) return this.#pushDropped(value)
    if ('broken' in value) return this.#pushBroken(value)
    return 'quarantined' in value ? this.#pushQuarantined(value, line) : this.#pushHead(value)
  }

  /** Only as the very first line: nothing in a chain can be dropped but its beginning. */
  #pushDropped(dropped: DroppedHead): Broken | undefined {
    const { seq, hash } = dropped
    if (this.#line > 1 || this.#at.seq > 0) return this.#broken(this.#at.seq + 1, 'a statement is out of place')
    if (!isSignedBy(dropped, this.#key))
      return this.#broken(1, 'the statement of what was dropped is not signed by this key')
    this.#dropped = dropped
    this.#at = { seq, hash }
    const expected = this.#expected
    if (expected?.seq === seq && expected.hash !== hash)
      return this.#broken(seq, 'the dropped records are not those that the given head vouches for')
    return undefined
  }

  /** The server itself says that the chain goes no further. */
  #pushBroken(statement: BrokenHead): Broken {
    const { seq } = this.#at
    if (!isSignedBy(statement, this.#key))
      return this.#broken(seq, 'the statement of a break is not signed by this key')
    if (statement.seq !== seq || statement.hash !== this.#at.hash)
      return this.#broken(Math.min(seq, statement.seq) + 1, 'the statement of a break is out of place')
    return this.#broken(
      seq + 1,
      `the server signed that the chain does not verify beyond ${seq}: ${statement.broken.reason}`,
    )
  }

  /** A link like a record: what comes after has its hash as `prev`. */
  #pushQuarantined(statement: QuarantinedHead, line: string): Broken | undefined {
    const { seq, hash } = this.#at
    if (!isSignedBy(statement, this.#key))
      return this.#broken(seq, 'the statement of a quarantine is not signed by this key')
    if (statement.seq !== seq || statement.hash !== hash || statement.quarantined.to <= seq)
      return this.#broken(Math.min(seq, statement.seq) + 1, 'the statement of a quarantine is out of place')
    this.#quarantined.push(statement)
    this.#at = { seq: statement.quarantined.to, hash: hashText(line) }
    return undefined
  }

  #pushRecord(record: AuditRecord): Broken | undefined {
    const next = this.#at.seq + 1
    if (record.seq > next) return this.#broken(next, `the record is missing: ${record.seq} follows ${this.#at.seq}`)
    if (record.seq < next) return this.#broken(record.seq, `the record comes again, after ${this.#at.seq}`)
    const { hash, ...unsealed } = record
    if (hashRecord(unsealed) !== hash) return this.#broken(next, 'the record does not have the hash it claims')
    if (record.prev !== this.#at.hash) return this.#broken(next, 'the record does not follow the one before it')
    this.#at = { seq: next, hash }
    this.#records += 1
    const expected = this.#expected
    if (expected?.seq === next && expected.hash !== hash)
      return this.#broken(next, 'the record is not the one that the given head vouches for')
    return undefined
  }

  #pushHead(head: SignedHead): Broken | undefined {
    const { seq, hash } = this.#at
    if (!isSignedBy(head, this.#key)) return this.#broken(seq, 'the head is not signed by this key')
    if (head.seq > seq) return this.#broken(seq + 1, `the record is missing: a head vouches for ${head.seq}`)
    if (head.seq < seq) return this.#broken(head.seq, 'the head is out of place')
    const unsigned = (this.#lastHead?.seq ?? this.#dropped?.seq ?? 0) + 1
    if (head.hash !== hash)
      return this.#broken(
        Math.max(1, Math.min(unsigned, seq)),
        `the records from here to ${seq} are not those that were signed`,
      )
    this.#lastHead = head
    this.#heads += 1
    return undefined
  }

  #broken(brokenAt: number, reason: string): Broken {
    return { ok: false, brokenAt, line: this.#line, reason }
  }
}

/**
 * Undefined unless the line is the canonical text of a record or a head: a duplicate field or odd white space could
 * be read differently by another reader. The parsed JSON is returned, not what the schema makes of it, for the hash
 * is over every field that is there.
 */
function parseLine(line: string): Line | undefined {
  if (line.length > MAX_LINE) return undefined
  try {
    const value: unknown = JSON.parse(line)
    if (canonical(value) !== line) return undefined
    if (signedHead.safeParse(value).success) return value as SignedHead
    if (droppedHead.safeParse(value).success) return value as DroppedHead
    if (brokenHead.safeParse(value).success) return value as BrokenHead
    if (quarantinedHead.safeParse(value).success) return value as QuarantinedHead
    return auditRecord.safeParse(value).success ? (value as AuditRecord) : undefined
  } catch (error) {
    // A line that is not JSON, or nested too deep, is a break of the chain, not a fault of ours.
    if (error instanceof SyntaxError || isAirlockError(error)) return undefined
    throw error
  }
}
