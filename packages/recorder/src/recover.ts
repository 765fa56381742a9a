import { timingSafeEqual } from 'node:crypto'
import { open, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { canonical, type ChainPosition, ChainVerifier, GENESIS, isSignedBy, macOf } from '@airlock/audit'
import { type SignedHead, signedHead } from '@airlock/contract'
import type { RecorderKeys } from './keys.ts'
import { endOfLines, isCode, listSegments, readBackward, readExactly, type Segment } from './segments.ts'
import { tallySegment } from './segment-index.ts'
import { exportLine, parseStored } from './stored-line.ts'
import { Tally } from './tally.ts'

/** How many records back a `rid` that is sent again is recognised. */
export const KNOWN_RIDS = 16 * 1024

export interface ChainPlace {
  readonly dir: string
  readonly tenant: string
  readonly keys: RecorderKeys
}

/** The end of a chain as it was found. */
export interface ChainTail {
  readonly position: ChainPosition
  /** Epoch milliseconds: nothing that follows may be older. */
  readonly ts: number
  /** Records after the last signed head. */
  readonly unsigned: number
  readonly end: { readonly segment: Segment; readonly size: number } | undefined
  /** Why nothing may be appended. */
  readonly broken: string | undefined
}

export interface Recovered extends ChainTail {
  readonly torn: { readonly bytes: number; readonly saved: boolean } | undefined
  /** Of the segment at the end. */
  readonly tally: Tally
  /** Of the newest records, oldest first. */
  readonly rids: readonly string[]
}

/**
 * Opens a chain after whatever happened. A last line without its end was never acknowledged: it is cut off and kept
 * beside. Everything after the last signed head must have its hash, link and mac. Fails closed: a chain that does not
 * verify is `broken`, and only read from then on.
 */
export async function recoverChain(place: ChainPlace): Promise<Recovered> {
  const { torn, end } = await cutTornLine(await listSegments(place.dir))
  const tail = await verifyTail(place, end)
  const tally = end ? await tallySegment(end.segment, end.size) : new Tally()
  return { ...tail, torn, tally, rids: await readRids(place.dir, end) }
}

/** Verifies from the last signed head to `end`, and that the chain has not lost what `head.json` vouches for. */
export async function verifyTail(place: ChainPlace, end: ChainTail['end']): Promise<ChainTail> {
  const latest = await readLatestHead(place)
  const empty = { position: { seq: 0, hash: GENESIS }, ts: 0, unsigned: 0, end, broken: undefined }
  if (latest === 'broken') return { ...empty, broken: 'head.json does not verify' }
  if (!end) return { ...empty, broken: latest && latest.seq > 0 ? 'the chain is gone' : undefined }
  const { head, lines } = await linesSinceHead(end)
  if (!head || !isSignedBy(head, place.keys.public) || head.tenant !== place.tenant)
    return { ...empty, broken: 'the last head does not verify' }
  if (latest && (latest.seq > head.seq || (latest.seq === head.seq && latest.hash !== head.hash)))
    return { ...empty, broken: `the chain is truncated: head.json is at ${latest.seq}` }
  return { ...followTail(place, head, lines), end }
}

function followTail(place: ChainPlace, head: SignedHead, lines: readonly string[]): Omit<ChainTail, 'end'> {
  const verifier = new ChainVerifier(place.keys.public, { from: head })
  let ts = Date.parse(head.ts)
  let unsigned = 0
  let broken: string | undefined
  for (const line of [canonical(head), ...lines]) {
    const stored = parseStored(line)
    broken = verifier.push(exportLine(line))?.reason
    if (stored?.type === 'record') {
      if (!isSame(macOf(place.keys.mac, stored.record.hash), stored.mac)) broken ??= 'a mac does not verify'
      ts = Math.max(ts, Date.parse(stored.record.ts))
      unsigned += 1
    }
    if (broken !== undefined) break
  }
  const at = verifier.position
  return { position: at, ts, unsigned, broken: broken && `${broken}, near record ${at.seq + 1}` }
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

async function readLatestHead({ dir, tenant, keys }: ChainPlace): Promise<SignedHead | 'broken' | undefined> {
  try {
    const head = signedHead.parse(JSON.parse(await readFile(join(dir, 'head.json'), 'utf8')))
    return head.tenant === tenant && isSignedBy(head, keys.public) ? head : 'broken'
  } catch (error) {
    return isCode(error, 'ENOENT') ? undefined : 'broken'
  }
}

/** Drops a segment whose very first line is torn: it was being made. */
async function cutTornLine(segments: readonly Segment[]): Promise<{ torn: Recovered['torn']; end: ChainTail['end'] }> {
  const segment = segments.at(-1)
  if (!segment) return { torn: undefined, end: undefined }
  const { size, torn } = await cutAfterLastLine(segment)
  if (size > 0) return { torn, end: { segment, size } }
  await unlink(segment.path)
  const before = await cutTornLine(segments.slice(0, -1))
  return { torn: torn ?? before.torn, end: before.end }
}

async function cutAfterLastLine(segment: Segment): Promise<{ size: number; torn: Recovered['torn'] }> {
  const file = await open(segment.path, 'r+')
  try {
    const { size } = await file.stat()
    const end = await endOfLines(file, size)
    if (end === size) return { size, torn: undefined }
    // The copy is for people; on a full disk the torn bytes are given up, and the record of it says so.
    const saved = await readExactly(file, end, size - end)
      .then(async (bytes) => writeFile(`${segment.path}.${end}.torn`, bytes))
      .then(
        () => true,
        () => false,
      )
    await file.truncate(end)
    await file.datasync()
    return { size: end, torn: { bytes: size - end, saved } }
  } finally {
    await file.close()
  }
}

async function readRids(dir: string, end: ChainTail['end']): Promise<string[]> {
  const rids: string[] = []
  if (!end) return rids
  for (const segment of (await listSegments(dir)).toReversed()) {
    const size = segment.path === end.segment.path ? end.size : undefined
    for await (const line of readBackward(segment.path, size ?? (await sizeOf(segment)))) {
      const rid = ridOf(line)
      if (rid !== undefined) rids.push(rid)
      if (rids.length >= KNOWN_RIDS) return rids.toReversed()
    }
  }
  return rids.toReversed()
}

/** Much cheaper than parsing. A payload may have a `rid` too, but in canonical order it comes before ours. */
function ridOf(line: string): string | undefined {
  const at = line.lastIndexOf('"rid":"')
  return at < 0 ? undefined : /^[a-z0-9_]+/.exec(line.slice(at + '"rid":"'.length, at + 64))?.[0]
}

async function sizeOf(segment: Segment): Promise<number> {
  const file = await open(segment.path, 'r')
  try {
    return (await file.stat()).size
  } finally {
    await file.close()
  }
}
