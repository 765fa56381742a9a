import type { KeyObject } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { type Broken, canonical, ChainVerifier } from '@airlock/audit'
import { AirlockError } from '@airlock/contract'
import type { Chain } from './chain.ts'
import { listSegments, readForward } from './segments.ts'
import { exportLine } from './stored-line.ts'

/**
 * Everything acknowledged when it began, as others may see it, and a head signed for it. The lines are verified on the
 * way: a chain that does not verify is still given away whole, but no head vouches for it and the end is an error.
 */
export async function* exportChain(
  chain: Chain,
  options: { readonly dir: string; readonly publicKey: KeyObject },
): AsyncGenerator<string> {
  const { position, end } = chain.snapshot
  const verifier = new ChainVerifier(options.publicKey)
  let broken: Broken | undefined
  for (const segment of end ? await listSegments(options.dir) : []) {
    if (!end || segment.firstSeq > end.segment.firstSeq) break
    const size = segment.path === end.segment.path ? end.size : (await stat(segment.path)).size
    for await (const stored of readForward(segment.path, size)) {
      const line = exportLine(stored)
      broken ??= verifier.push(line)
      yield line
    }
  }
  if (broken) throw new AirlockError('evidence_broken', `Record ${broken.brokenAt} does not verify: ${broken.reason}.`)
  yield canonical(chain.signHead(position))
}
