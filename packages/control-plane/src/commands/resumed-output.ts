import { AirlockError, type ErrorCode, isAirlockError } from '@airlock/contract'
import { sleep } from '@airlock/std'
import { findSandbox } from '../store/sandboxes.ts'
import type { Context } from '../app/context.ts'
import type { CommandRef } from './command-ref.ts'
import type { OutputItem } from '@airlock/wire'
import { isEnded } from '../sandboxes/lifecycle.ts'

const RETRY_MS = 250
/** Longer than the data plane needs to be restarted. */
const SILENT_TRIES = 60

interface Asked {
  readonly from: number
  /** Rich lines from their beginning, for whoever goes on in the middle of one. */
  readonly isRichWhole?: boolean
  readonly signal: AbortSignal
  /** A stream of it that is open already. */
  readonly first?: AsyncIterable<OutputItem> | undefined
}

/** The output over as many connections as it takes. Stops without an `end` when the sandbox ended meanwhile. */
export async function* resumedOutput(
  of: Pick<Context, 'store' | 'dataPlane'> & { readonly ref: CommandRef },
  asked: Asked,
): AsyncGenerator<OutputItem> {
  let { from } = asked
  let open = asked.first ?? of.dataPlane.output(of.ref, asked)
  for (let silent = 1; silent <= SILENT_TRIES; silent++) {
    for await (const item of untilBroken(open, asked.signal)) {
      yield item
      if (item.kind === 'end') return
      from = item.offset + item.bytes.length
      silent = 0
    }
    const sandbox = await of.store.query((db) => findSandbox(db, of.ref.sandbox))
    if (!sandbox || isEnded(sandbox.state)) return
    await sleep(RETRY_MS, asked.signal)
    open = of.dataPlane.output(of.ref, { from, signal: asked.signal })
  }
  throw new AirlockError('data_plane_unavailable')
}

async function* untilBroken(open: AsyncIterable<OutputItem>, signal: AbortSignal): AsyncGenerator<OutputItem> {
  try {
    yield* open
  } catch (error) {
    signal.throwIfAborted()
    if (!isInterruption(error)) throw error
  }
}

/** The data plane restarts, or the sandbox is just ending: the row will tell. */
function isInterruption(error: unknown): boolean {
  return isAirlockError(error) && INTERRUPTIONS.has(error.code)
}

const INTERRUPTIONS: ReadonlySet<ErrorCode> = new Set([
  'data_plane_unavailable',
  'sandbox_not_found',
  'sandbox_not_active',
  'sandbox_ended',
  'guest_lost',
])
