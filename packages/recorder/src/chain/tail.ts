import { timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { canonical, type ChainPosition, ChainVerifier, GENESIS, isSignedBy, macOf } from '@airlock/audit'
import { type SignedHead, signedHead } from '@airlock/contract'
import type { RecorderKeys } from '../keys.ts'
import { isCode, readBackward, readPlaced, type Segment } from './segments.ts'
import { exportLine, isOurs, parseStored } from './stored-line.ts'

export interface ChainPlace {
  readonly dir: string
  readonly tenant: string
  readonly keys: RecorderKeys
}

/** The end of a chain as it was found: of what verifies. */
export interface ChainTail {
  readonly position: ChainPosition
  /** Epoch milliseconds: what the clock said at the last record. */
  readonly ts: number
  /** Records after the last signed head. */
  readonly unsigned: number
  readonly end: { readonly segment: Segment; readonly size: number } | undefined
  /** Why nothing may be appended. */
  readonly broken: string | undefined
}

/** Bytes at the end of a chain that are no evidence, and may never have been acknowledged. */
export interface Doubtful {
  readonly segment: Segment
  /** The first of them. */
  readonly from: number
}

/** Verifies from the last signed head to `end`, and that the chain has not lost what `head.json` vouches for. */
export async function verifyTail(place: ChainPlace, end: ChainTail['end']): Promise<ChainTail> {
  const latest = await readLatestHead(place)
  const empty = { ...NOWHERE, end, broken: undefined }
  if (latest === 'broken') return { ...empty, broken: 'head.json does not verify' }
  if (!end) return { ...empty, broken: latest && latest.seq > 0 ? 'the chain is gone' : undefined }
  const { head, lines } = await linesSinceHead(end)
  if (!head || !isHeadOf(place, head)) return { ...empty, broken: 'the last head does not verify' }
  if (latest && isBeyond(latest, head))
    return { ...empty, broken: `the chain is truncated: head.json is at ${latest.seq}` }
  const follower = new Follower(place, head)
  let broken: string | undefined
  for (const line of lines) if ((broken = follower.push(line)) !== undefined) break
  const { position, ts, unsigned } = follower
  return { position, ts, unsigned, end, broken: broken && `${broken}, near record ${position.seq + 1}` }
}

function isHeadOf({ tenant, keys }: ChainPlace, head: SignedHead): boolean {
  return head.tenant === tenant && isSignedBy(head, keys.public)
}

function isBeyond(latest: SignedHead, head: SignedHead): boolean {
  return latest.seq > head.seq || (latest.seq === head.seq && latest.hash !== head.hash)
}

/**
 * What is good of a chain that does not verify: all up to the first line that cannot be trusted. `doubtful` when what
 * follows is not evidence that somebody changed but no evidence at all, as a host leaves it that lost its power, and
 * nothing that was signed is missing.
 */
export async function findGood(
  place: ChainPlace,
  segments: readonly Segment[],
): Promise<Omit<ChainTail, 'broken'> & { readonly doubtful: Doubtful | undefined }> {
  const latest = await readLatestHead(place)
  let isLast = true
  let doubtful: Doubtful | undefined
  for (const segment of segments.toReversed()) {
    const found = await followSegment(place, segment)
    if (found.bad && isLast && found.bad.isGarbage) doubtful = { segment, from: found.size }
    else if (found.bad) doubtful = undefined
    isLast = false
    if (found.size === 0) continue
    const { position, ts, unsigned, size } = found
    const isMissed = latest === 'broken' || (latest !== undefined && latest.seq > position.seq)
    return { position, ts, unsigned, end: { segment, size }, doubtful: isMissed ? undefined : doubtful }
  }
  return { ...NOWHERE, end: undefined, doubtful: undefined }
}

interface Followed extends Omit<ChainTail, 'end' | 'broken'> {
  /** Where the last good line ends; 0 when there is none. */
  readonly size: number
  /** What comes after it, and whether no line of that is ours to judge. */
  readonly bad: { readonly isGarbage: boolean } | undefined
}

const NOWHERE = { position: { seq: 0, hash: GENESIS }, ts: 0, unsigned: 0 }

/** From its first line, which must be a signed head. */
async function followSegment(place: ChainPlace, segment: Segment): Promise<Followed> {
  let follower: Follower | undefined
  let size = 0
  let bad: { isGarbage: boolean } | undefined
  const isGood = (text: string): boolean => {
    if (follower) return follower.push(text) === undefined
    follower = beginAt(place, text)
    return follower !== undefined
  }
  for await (const { text = '', isTooLong, end } of readPlaced(segment.path)) {
    if (!bad && !isTooLong && isGood(text)) size = end
    else if (!bad) bad = { isGarbage: isTooLong || !isOurs(text) }
    else if (isSignedLine(place, text)) bad.isGarbage = false
  }
  const { position, ts, unsigned } = follower ?? NOWHERE
  return { position, ts, unsigned, size, bad }
}

function beginAt(place: ChainPlace, text: string): Follower | undefined {
  const stored = parseStored(text)
  return stored?.type === 'head' && isHeadOf(place, stored.head) ? new Follower(place, stored.head) : undefined
}

function isSignedLine({ keys }: ChainPlace, text: string): boolean {
  const stored = parseStored(text)
  return stored?.type === 'head' && isSignedBy(stored.head, keys.public)
}

/** Goes on from a signed head, record by record: each must have its hash, its link and our mac. */
class Follower {
  readonly #place: ChainPlace
  readonly #verifier: ChainVerifier
  ts: number
  unsigned = 0
  position: ChainPosition

  constructor(place: ChainPlace, head: SignedHead) {
    this.#place = place
    this.#verifier = new ChainVerifier(place.keys.public, { from: head })
    this.#verifier.push(canonical(head))
    this.position = { seq: head.seq, hash: head.hash }
    this.ts = Date.parse(head.ts)
  }

  /** Why the line is not good. */
  push(line: string): string | undefined {
    const stored = parseStored(line)
    const broken = this.#verifier.push(exportLine(line))?.reason
    if (broken !== undefined) return broken
    if (stored?.type === 'record') {
      if (!isSame(macOf(this.#place.keys.mac, stored.record.hash), stored.mac)) return 'a mac does not verify'
      this.ts = Date.parse(stored.record.ts)
      this.unsigned += 1
    } else this.unsigned = 0
    this.position = this.#verifier.position
    return undefined
  }
}

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}

/** The last signed head and all after it, oldest first. Bounded by the size of a segment, which begins with a head. */
async function linesSinceHead(end: NonNullable<ChainTail['end']>): Promise<{ head?: SignedHead; lines: string[] }> {
  const lines: string[] = []
  for await (const line of readBackward(end.segment.path, end.size)) {
    const stored = parseStored(line)
    if (stored?.type === 'head') return { head: stored.head, lines: lines.toReversed() }
    lines.push(line)
  }
  return { lines: lines.toReversed() }
}

export async function readLatestHead(place: ChainPlace): Promise<SignedHead | 'broken' | undefined> {
  try {
    const head = signedHead.parse(JSON.parse(await readFile(join(place.dir, 'head.json'), 'utf8')))
    return isHeadOf(place, head) ? head : 'broken'
  } catch (error) {
    return isCode(error, 'ENOENT') ? undefined : 'broken'
  }
}
