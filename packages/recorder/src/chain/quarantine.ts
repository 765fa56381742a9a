import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, open, rename, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { canonical, type ChainPosition, hashText, isSignedBy, macOf, signHead, signQuarantined } from '@airlock/audit'
import type { QuarantinedHead } from '@airlock/contract'
import { isCode, listSegments, readPlaced, type Segment, segmentAt, syncDir } from './segments.ts'
import { parseStored } from './stored-line.ts'
import { type ChainPlace, type ChainTail, findGood, readLatestHead } from './tail.ts'

export interface Quarantine {
  readonly reason: string
  /** Who asked for it. */
  readonly by: string
  /** The highest number that others know of. */
  readonly known: number
  readonly ts: string
  /** Where the chain begins when nothing of it is good. */
  readonly start: ChainPosition
}

/**
 * Sets aside all that follows the last good record of a chain, and links a signed statement of that in its place; the
 * chain goes on with a number that no record had. Nothing is deleted: files that were changed or moved are kept beside.
 * A crash leaves the chain broken as it was, or linked.
 */
export async function quarantine(place: ChainPlace, asked: Quarantine): Promise<QuarantinedHead> {
  const segments = await listSegments(place.dir)
  const found = await findGood(place, segments)
  const position = found.end ? found.position : asked.start
  const bad = badParts(segments, found.end)
  const latest = await readLatestHead(place)
  const highest = await highestIn(place, bad)
  const signed = latest === undefined || latest === 'broken' ? 0 : latest.seq
  const to = Math.max(position.seq, signed, highest, asked.known) + 1
  const { tenant, keys } = place
  const { bytes, sha256 } = await digest(bad)
  const { reason, by, ts } = asked
  const quarantined = { to, bytes, sha256, reason, by }
  const statement = signQuarantined(keys.signing, { tenant, ts, ...position, quarantined })
  const line = canonical(statement)
  const head = canonical(signHead(keys.signing, { tenant, ts, seq: to, hash: hashText(line) }))
  const begin = found.end ? '' : `${canonical(signHead(keys.signing, { tenant, ts, ...position }))}\n`
  const suffix = `.quarantined-${to}`
  const last = found.end?.segment ?? segmentAt(place.dir, position.seq + 1)
  await replaceEnd(last, { size: found.end?.size ?? 0, suffix, text: `${begin}${line}\n${head}\n` })
  for (const { segment } of bad) if (segment.path !== last.path) await moveAside(segment.path, suffix)
  await moveAside(join(place.dir, 'head.json'), suffix)
  await syncDir(place.dir)
  return statement
}

interface Part {
  readonly segment: Segment
  /** The first byte that is bad. */
  readonly from: number
}

function badParts(segments: readonly Segment[], end: ChainTail['end']): readonly Part[] {
  const first = end ? segments.findIndex(({ path }) => path === end.segment.path) : 0
  return segments.slice(first).map((segment) => ({ segment, from: segment.path === end?.segment.path ? end.size : 0 }))
}

/** The highest number of what our keys vouch for; the others could be anything. */
async function highestIn({ keys }: ChainPlace, parts: readonly Part[]): Promise<number> {
  let highest = 0
  for (const { segment, from } of parts)
    for await (const { text = '', end } of readPlaced(segment.path)) {
      const stored = end > from ? parseStored(text) : undefined
      if (stored?.type === 'head' && isSignedBy(stored.head, keys.public)) highest = Math.max(highest, stored.head.seq)
      if (stored?.type === 'record' && macOf(keys.mac, stored.record.hash) === stored.mac)
        highest = Math.max(highest, stored.record.seq)
    }
  return highest
}

async function digest(parts: readonly Part[]): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256')
  let bytes = 0
  for (const { segment, from } of parts) {
    if ((await stat(segment.path)).size <= from) continue
    for await (const chunk of createReadStream(segment.path, { start: from }) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      bytes += chunk.length
    }
  }
  return { bytes, sha256: hash.digest('hex') }
}

/** The good part of the last segment and the statement, in one step; the whole file as it was is kept under another name. */
async function replaceEnd(
  { path }: Segment,
  of: { readonly size: number; readonly suffix: string; readonly text: string },
): Promise<void> {
  const fresh = await open(`${path}.new`, 'w', 0o600)
  try {
    if (of.size > 0) await fresh.writeFile(createReadStream(path, { end: of.size - 1 }))
    await fresh.writeFile(of.text)
    await fresh.sync()
  } finally {
    await fresh.close()
  }
  await link(path, `${path}${of.suffix}`).catch((error: unknown) => {
    if (!isCode(error, 'ENOENT') && !isCode(error, 'EEXIST')) throw error
  })
  await rename(`${path}.new`, path)
  await syncDir(dirname(path))
}

async function moveAside(path: string, suffix: string): Promise<void> {
  await rename(path, `${path}${suffix}`).catch((error: unknown) => {
    if (!isCode(error, 'ENOENT')) throw error
  })
}
