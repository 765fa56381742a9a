import type { Followed, RecordFilter, RecordPage } from '@airlock/audit'
import { AirlockError, type AuditRecord } from '@airlock/contract'
import type { Archive } from '../chain/archive.ts'
import type { Chain } from '../chain/chain.ts'
import { ForwardReader } from './forward-reader.ts'
import { queryChain } from './query.ts'

/** After so many that did not match, whoever follows is told how far it is. */
const SILENT_RECORDS = 10_000
/** So that no filter makes one call read a whole chain. */
const MAX_SCANNED = 50_000
/** One page must fit one line of the protocol. */
const MAX_PAGE_BYTES = 512 * 1024

interface Place {
  readonly archive: Archive
  readonly chain: Chain
}

interface Asked {
  readonly filter: RecordFilter
  readonly after?: number | undefined
}

/**
 * Everything that matches from `after` on, each once and in order, without an end. It first says where it begins. Whoever
 * reads slowly is waited for and costs a place in a file, no memory; the chain never waits.
 */
export async function* followChain(place: Place, asked: Asked, signal: AbortSignal): AsyncGenerator<Followed> {
  const reader = new ForwardReader(place, { filter: asked.filter, after: startOf(place, asked) })
  yield { type: 'at', seq: reader.seq }
  let told = reader.seq
  while (!signal.aborted) {
    if (reader.skipDropped()) yield { type: 'gap', seq: (told = reader.seq) }
    for await (const record of reader.read()) {
      if (record) yield { type: 'record', record }
      else if (reader.seq - told < SILENT_RECORDS) continue
      else yield { type: 'at', seq: reader.seq }
      told = reader.seq
    }
    await place.chain.growth.beyond(reader.seq, signal)
  }
}

/** Oldest first: what comes after `after`, or the latest that match. */
export async function pageChain(place: Place, asked: Asked & { readonly limit: number }): Promise<RecordPage> {
  if (asked.after === undefined && asked.filter.since === undefined) return latestPage(place, asked)
  const reader = new ForwardReader(place, { filter: asked.filter, after: startOf(place, asked) })
  const gap = reader.skipDropped() && asked.after !== undefined ? reader.seq : null
  const records: AuditRecord[] = []
  const from = reader.seq
  let after = from
  let bytes = 0
  for await (const record of reader.read()) {
    bytes += record ? JSON.stringify(record).length : 0
    if (records.length > 0 && bytes > MAX_PAGE_BYTES) break
    if (record) records.push(record)
    after = reader.seq
    if (records.length === asked.limit || after - from >= MAX_SCANNED) break
  }
  return { records, after, gap }
}

async function latestPage({ archive, chain }: Place, asked: Asked & { readonly limit: number }): Promise<RecordPage> {
  const { seq } = chain.snapshot.position
  const { records } = await queryChain(
    { archive, chain },
    { filter: asked.filter, limit: asked.limit, before: seq + 1 },
  )
  return { records: records.toReversed(), after: seq, gap: null }
}

/** Without a record to begin after: from now on, or from where `since` lies. */
function startOf({ archive, chain }: Place, { after, filter }: Asked): number {
  const { seq } = chain.snapshot.position
  if (after === undefined) return filter.since === undefined ? seq : archive.start.seq
  if (after > seq)
    throw new AirlockError('invalid_request', `after: the chain ends at ${seq}.`, {
      hint: 'Every node has a chain of its own: ask the one that the number is from.',
    })
  return after
}
