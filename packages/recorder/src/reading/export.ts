import { stat } from 'node:fs/promises'
import { type Broken, canonical, ChainVerifier } from '@airlock/audit'
import { AirlockError } from '@airlock/contract'
import type { Archive } from '../chain/archive.ts'
import type { Chain } from '../chain/chain.ts'
import { isCode, readForward } from '../chain/segments.ts'
import { exportLine } from '../chain/stored-line.ts'

/**
 * Everything acknowledged when it began, as others may see it, and a head signed for it. The lines are verified on the
 * way: one with damage in the middle is still given away whole, but no head vouches for it and the end is an error. One
 * that is broken at its end is given away up to there, and ends with the signed statement of that. Where retention dropped the beginning, the signed statement of that comes first.
 */
export async function* exportChain(chain: Chain, archive: Archive): AsyncGenerator<string> {
  const { snapshot } = chain
  const verifier = new ChainVerifier(archive.place.keys.public)
  let broken: Broken | undefined
  try {
    for await (const line of linesOf(archive, snapshot)) {
      broken ??= verifier.push(line)
      yield line
    }
  } catch (cause) {
    if (!isCode(cause, 'ENOENT')) throw cause
    throw new AirlockError('evidence_unavailable', 'Retention dropped the beginning meanwhile: export again.', {
      cause,
    })
  }
  if (broken) throw new AirlockError('evidence_broken', `Record ${broken.brokenAt} does not verify: ${broken.reason}.`)
  yield canonical(chain.broken === undefined ? chain.signHead({ ...snapshot.position, end: true }) : chain.signBroken())
}

async function* linesOf(archive: Archive, snapshot: Chain['snapshot']): AsyncGenerator<string> {
  const { dropped, segments } = await archive.kept(snapshot)
  if (dropped) yield canonical(dropped)
  for (const { path } of segments) {
    const size = path === snapshot.end?.segment.path ? snapshot.end.size : (await stat(path)).size
    for await (const stored of readForward(path, size)) yield exportLine(stored)
  }
}
