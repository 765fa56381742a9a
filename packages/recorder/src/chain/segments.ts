import { createReadStream } from 'node:fs'
import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AirlockError } from '@airlock/contract'
import { LineSplitter, MAX_LINE_BYTES } from '@airlock/wire'

const BLOCK_BYTES = 64 * 1024
const NEWLINE = 0x0a
const NAME = /^(\d{12})\.ndjson$/

/** A file of a chain. Its name is the seq of its first record; its first line is a signed head of all before it. */
export interface Segment {
  readonly path: string
  readonly firstSeq: number
}

export function segmentAt(dir: string, firstSeq: number): Segment {
  return { path: join(dir, `${String(firstSeq).padStart(12, '0')}.ndjson`), firstSeq }
}

/** Oldest first; none when the chain does not exist. */
export async function listSegments(dir: string): Promise<readonly Segment[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return []
    throw error
  })
  return names
    .filter((name) => NAME.test(name))
    .sort()
    .map((name) => segmentAt(dir, Number(name.slice(0, 12))))
}

/** The lines of the first `end` bytes, oldest first; from `start` on, which is where a line begins. */
export async function* readForward(path: string, end: number, start = 0): AsyncGenerator<string> {
  if (end <= start) return
  const splitter = new LineSplitter()
  for await (const chunk of createReadStream(path, { start, end: end - 1 }) as AsyncIterable<Buffer>)
    yield* splitter.push(chunk)
}

interface PlacedLine {
  readonly text?: string
  /** No line of ours is as long, so it is not kept. */
  readonly isTooLong: boolean
  /** Where the next line begins. */
  readonly end: number
}

/** All lines of a file, whatever they are. Bytes behind the last end of a line are none. */
export async function* readPlaced(path: string): AsyncGenerator<PlacedLine> {
  let parts: Buffer[] = []
  let length = 0
  let at = 0
  const keep = (bytes: Buffer): void => {
    length += bytes.length
    if (length <= MAX_LINE_BYTES) parts.push(bytes)
  }
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      keep(chunk.subarray(start, end))
      start = end + 1
      const isTooLong = length > MAX_LINE_BYTES
      yield { isTooLong, end: at + start, ...(isTooLong ? {} : { text: Buffer.concat(parts).toString('utf8') }) }
      parts = []
      length = 0
    }
    keep(chunk.subarray(start))
    at += chunk.length
  }
}

/** The lines of the first `end` bytes, newest first. Precondition: `end` is the end of a line. */
export async function* readBackward(path: string, end: number): AsyncGenerator<string> {
  const file = await open(path, 'r')
  try {
    let rest: Buffer = Buffer.alloc(0)
    for (let at = end; at > 0;) {
      const size = Math.min(BLOCK_BYTES, at)
      at -= size
      const bytes = Buffer.concat([await readExactly(file, at, size), rest])
      // What stands before the first newline is the end of a line that begins in an earlier block.
      const start = at === 0 ? 0 : bytes.indexOf(NEWLINE) + 1
      rest = bytes.subarray(0, start || (at === 0 ? 0 : bytes.length))
      if (rest.length > MAX_LINE_BYTES) throw new AirlockError('evidence_broken', 'A line of evidence is too long.')
      if (rest.length === bytes.length) continue
      yield* bytes.toString('utf8', start).split('\n').filter(Boolean).toReversed()
    }
  } finally {
    await file.close()
  }
}

/** Where the last whole line ends. */
export async function endOfLines(file: FileHandle, size: number): Promise<number> {
  for (let at = size; at > 0;) {
    const length = Math.min(BLOCK_BYTES, at)
    at -= length
    const newline = (await readExactly(file, at, length)).lastIndexOf(NEWLINE)
    if (newline >= 0) return at + newline + 1
  }
  return 0
}

export async function readExactly(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  for (let done = 0; done < length;) {
    const { bytesRead } = await file.read(bytes, done, length - done, at + done)
    if (bytesRead === 0) throw new AirlockError('evidence_broken', 'A file of evidence is shorter than it was.')
    done += bytesRead
  }
  return bytes
}

/** A new name is durable only when its directory is. */
export async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
