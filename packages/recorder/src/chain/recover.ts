import { open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { GENESIS } from '@airlock/audit'
import { keepAside, moveAside } from './aside.ts'
import { endOfLines, listSegments, readBackward, readExactly, type Segment, syncDir } from './segments.ts'
import { tallySegment } from './segment-index.ts'
import { type ChainPlace, type ChainTail, type Doubtful, findGood, verifyTail } from './tail.ts'
import { Tally } from '../reading/tally.ts'

/** How many records back a `rid` that is sent again is recognised. */
export const KNOWN_RIDS = 16 * 1024

export interface Recovered extends ChainTail {
  readonly torn: { readonly bytes: number; readonly saved: boolean } | undefined
  /** What stands behind `end`. Nothing is appended before somebody who knows what was acknowledged has decided. */
  readonly doubtful: Doubtful | undefined
  /** Of the segment at the end. */
  readonly tally: Tally
  /** Of the newest records, oldest first. */
  readonly rids: readonly string[]
}

/**
 * Opens a chain after whatever happened, and syncs what it found: the process that wrote it may have died before it could,
 * and whoever sends such a record again is told at once that it is durable. A last line without its end was never
 * acknowledged: it is cut off and kept beside. Everything after the last signed head must have its hash, link and mac.
 * Fails closed: a chain that does not verify is `broken`, or its end is `doubtful`. It is read up to there, and only read.
 */
export async function recoverChain(place: ChainPlace): Promise<Recovered> {
  const { torn, end } = await cutTornLine(await listSegments(place.dir))
  if (end) await syncFound(place.dir, end.segment)
  const tail = await verifyTail(place, end).catch(cannotRead)
  const good = tail.broken === undefined ? { ...tail, doubtful: undefined } : await salvage(place, tail.broken)
  const tally = good.end ? await tallySegment(good.end.segment, good.end.size) : new Tally()
  return { ...good, torn, tally, rids: await readRids(place.dir, good.end) }
}

/** A line that is longer than any of ours, or a disk that does not answer. */
function cannotRead(error: unknown): ChainTail {
  const position = { seq: 0, hash: GENESIS }
  return { position, ts: 0, unsigned: 0, end: undefined, broken: `it cannot be read: ${String(error)}` }
}

async function salvage(place: ChainPlace, broken: string): Promise<ChainTail & Pick<Recovered, 'doubtful'>> {
  const good = await findGood(place, await listSegments(place.dir))
  return { ...good, broken: good.doubtful ? undefined : broken }
}

/** Cuts off what is doubtful, and keeps it beside. Throws when it cannot be kept, and cuts nothing then. */
export async function cutDoubtful(dir: string, { segment, from }: Doubtful): Promise<{ readonly bytes: number }> {
  const aside = `${segment.path}.${from}.torn`
  const file = await open(segment.path, 'r+')
  try {
    const { size } = await file.stat()
    if (size <= from) return { bytes: 0 }
    if (from === 0) await moveAside(segment.path, aside)
    else {
      await keepAside(aside, await readExactly(file, from, size - from))
      await file.truncate(from)
      await file.datasync()
    }
    await syncDir(dir)
    return { bytes: size - from }
  } finally {
    await file.close()
  }
}

async function syncFound(dir: string, { path }: Segment): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.datasync()
  } finally {
    await file.close()
  }
  await syncDir(dir)
  await syncDir(join(dir, '..'))
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
      .then(async (bytes) => keepAside(`${segment.path}.${end}.torn`, bytes))
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

/** As far back as segments can be read: a damaged one that is sealed does not keep the chain from going on. */
async function readRids(dir: string, end: ChainTail['end']): Promise<string[]> {
  const rids: string[] = []
  if (!end) return rids
  const take = async (segment: Segment, size: number): Promise<void> => {
    for await (const line of readBackward(segment.path, size)) {
      const rid = ridOf(line)
      if (rid !== undefined) rids.push(rid)
      if (rids.length >= KNOWN_RIDS) return
    }
  }
  const before = (await listSegments(dir)).filter(({ firstSeq }) => firstSeq < end.segment.firstSeq)
  await take(end.segment, end.size)
  try {
    for (const segment of before.toReversed()) if (rids.length < KNOWN_RIDS) await take(segment, await sizeOf(segment))
  } catch {
    // The background finds it, and tells: a sender that sends an older record again writes it twice.
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
