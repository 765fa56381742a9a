import { isSignedBy } from '@airlock/audit'
import { type QuarantinedHead, quarantinedHead, type SignedHead } from '@airlock/contract'
import type { Archive } from './archive.ts'
import type { Chain } from './chain.ts'
import { queryChain } from '../reading/query.ts'
import { readForward } from './segments.ts'

/** What others know of a chain. */
export interface Known {
  /** Kept in the store: a chain must have it. */
  readonly head: SignedHead | null
  /** Records that were acknowledged. Looked at only when the end of the chain is in doubt. */
  readonly rids: readonly string[]
}

/** Why a chain cannot be what others know of it; undefined when it can. */
export async function contradiction(
  of: { readonly chain: Chain; readonly archive: Archive },
  { head, rids }: Known,
): Promise<string | undefined> {
  const { chain } = of
  const { position } = chain.snapshot
  if (head && head.seq > position.seq)
    return `it ends at record ${position.seq}, and the head in the store is at ${head.seq}`
  if (head && !(await holds(of, head)))
    return `record ${head.seq} is not the one that the head in the store vouches for`
  const missing = chain.isDoubtful ? rids.find((rid) => !chain.has(rid)) : undefined
  return missing === undefined ? undefined : `it lacks ${missing}, which was acknowledged`
}

async function holds(of: { readonly chain: Chain; readonly archive: Archive }, head: SignedHead): Promise<boolean> {
  const { position } = of.chain.snapshot
  if (head.seq === position.seq) return head.hash === position.hash
  const { records } = await queryChain(of, { filter: {}, limit: 1, before: head.seq + 1 })
  const [record] = records
  if (record?.seq === head.seq) return record.hash === head.hash
  if (await isSetAside(of, head.seq)) return true
  if (record) return false
  // Retention signs what it drops, so nothing else can look like it.
  const { dropped } = of.archive
  return dropped !== undefined && (dropped.seq > head.seq || dropped.hash === head.hash)
}

/** Whether a signed statement says of this number that its record was set aside. */
async function isSetAside({ chain, archive }: Parameters<typeof holds>[0], seq: number): Promise<boolean> {
  const { segments } = await archive.kept(chain.snapshot)
  const segment = segments.findLast(({ firstSeq }) => firstSeq <= seq)
  if (!segment) return false
  for await (const line of readForward(segment.path, Infinity)) {
    const statement = line.includes('"quarantined":') ? parseQuarantined(line) : undefined
    if (!statement || !isSignedBy(statement, archive.place.keys.public)) continue
    if (statement.seq < seq && seq <= statement.quarantined.to) return true
  }
  return false
}

function parseQuarantined(line: string): QuarantinedHead | undefined {
  try {
    return quarantinedHead.safeParse(JSON.parse(line)).data
  } catch {
    // Not JSON: no statement.
    return undefined
  }
}
