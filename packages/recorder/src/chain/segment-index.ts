import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { Log } from '@airlock/std'
import { z } from 'zod'
import { isCode, readForward, type Segment } from './segments.ts'
import { parseStored } from './stored-line.ts'
import { storedTally, Tally } from '../reading/tally.ts'

/** So many of a chain are kept in memory; the others are read again when they are needed. */
const MAX_CACHED = 64

/** Beside a segment. It belongs to exactly these bytes, or is made anew. */
const storedIndex = z.strictObject({
  version: z.literal(1),
  sha256: z.string(),
  bytes: z.int().min(0),
  tally: storedTally.nullable(),
})

export interface SegmentIndex {
  readonly bytes: number
  readonly tally: Tally
}

interface Cached extends SegmentIndex {
  /** Changes whenever the file does. */
  readonly identity: string
  readonly writtenAt: number
}

/** The little that is kept of every segment. */
export interface Outline {
  readonly bytes: number
  /** The latest time of its records. */
  readonly lastTs: string | undefined
  /** When the file was written to last, epoch milliseconds. */
  readonly writtenAt: number
}

/**
 * What is known of the segments that are not written to any more, without reading them. It is derived from a segment and
 * holds only for its very bytes: one that is missing or does not match is made anew. It finds evidence and never is any.
 */
export class SegmentIndexes {
  readonly #cached = new Map<string, Cached>()
  readonly #outlines = new Map<string, Outline & { readonly identity: string }>()
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  /** Throws ENOENT when the segment is gone. Precondition: nobody writes to it. */
  async of(segment: Segment): Promise<SegmentIndex> {
    const { size, identity, writtenAt } = await identify(segment)
    const cached = this.#cached.get(segment.path)
    if (cached?.identity === identity) return cached
    const sha256 = await hashOf(segment.path, size)
    const stored = await readIndex(segment)
    const isSame = stored?.sha256 === sha256 && stored.bytes === size
    const tally = isSame ? (stored.tally ? Tally.from(stored.tally) : new Tally()) : await tallySegment(segment, size)
    if (!isSame) await this.#write(segment, { sha256, bytes: size, tally })
    return this.#keep(segment, { identity, writtenAt, bytes: size, tally })
  }

  /** The same, for who asks of many. Of a segment that cannot be read it is its size: it counts, and is never dropped. */
  async outline(segment: Segment): Promise<Outline> {
    const { identity, writtenAt, size } = await identify(segment)
    const known = this.#outlines.get(segment.path)
    if (known?.identity === identity) return known
    try {
      const { bytes, tally } = await this.of(segment)
      return { bytes, lastTs: tally.range?.lastTs, writtenAt }
    } catch (error) {
      if (isCode(error, 'ENOENT')) throw error
      this.#log.warn('a segment of evidence cannot be read', { path: segment.path, error })
      return { bytes: size, lastTs: undefined, writtenAt }
    }
  }

  /** Keeps what was counted while the segment was written, so that it need not be read again. */
  async seal(segment: Segment, tally: Tally): Promise<void> {
    const { size, identity, writtenAt } = await identify(segment)
    await this.#write(segment, { sha256: await hashOf(segment.path, size), bytes: size, tally })
    this.#keep(segment, { identity, writtenAt, bytes: size, tally })
  }

  async forget(segment: Segment): Promise<void> {
    this.#cached.delete(segment.path)
    this.#outlines.delete(segment.path)
    await rm(indexPath(segment), { force: true })
  }

  #keep(segment: Segment, index: Cached): Cached {
    const { identity, bytes, tally } = index
    this.#outlines.set(segment.path, { identity, bytes, lastTs: tally.range?.lastTs, writtenAt: index.writtenAt })
    this.#cached.delete(segment.path)
    this.#cached.set(segment.path, index)
    for (const oldest of this.#cached.keys()) {
      if (this.#cached.size <= MAX_CACHED) break
      this.#cached.delete(oldest)
    }
    return index
  }

  /** On a full disk there is none, and it is made anew when it is needed. */
  async #write(segment: Segment, index: SegmentIndex & { readonly sha256: string }): Promise<void> {
    const { sha256, bytes, tally } = index
    const path = indexPath(segment)
    const text = JSON.stringify({ version: 1, sha256, bytes, tally: tally.toStored() ?? null })
    try {
      await writeFile(`${path}.new`, text, { mode: 0o600 })
      await rename(`${path}.new`, path)
    } catch (error) {
      this.#log.warn('an index of evidence could not be written', { path, error })
      // What is half written would only take space.
      await rm(`${path}.new`, { force: true }).catch(() => undefined)
    }
  }
}

/** Counts what is in the first `size` bytes of a segment. A damaged line is no record. */
export async function tallySegment(segment: Segment, size: number): Promise<Tally> {
  const tally = new Tally()
  for await (const line of readForward(segment.path, size)) {
    const stored = parseStored(line)
    if (stored?.type === 'record') tally.add(stored.record)
  }
  return tally
}

async function identify(segment: Segment) {
  const { size, mtimeMs, ino } = await stat(segment.path)
  return { size, identity: `${ino} ${size} ${mtimeMs}`, writtenAt: mtimeMs }
}

function indexPath(segment: Segment): string {
  return segment.path.replace(/\.ndjson$/, '.index.json')
}

async function readIndex(segment: Segment): Promise<z.infer<typeof storedIndex> | undefined> {
  try {
    return storedIndex.safeParse(JSON.parse(await readFile(indexPath(segment), 'utf8'))).data
  } catch {
    // Missing or damaged is the same: it is made anew.
    return undefined
  }
}

async function hashOf(path: string, size: number): Promise<string> {
  const hash = createHash('sha256')
  if (size > 0)
    for await (const chunk of createReadStream(path, { end: size - 1 }) as AsyncIterable<Buffer>) hash.update(chunk)
  return hash.digest('hex')
}
