import { AirlockError, type NodeCommand, type Step, type StepEvent } from '@airlock/contract'
import { deadline, untilAborted } from '@airlock/std'
import type { StepEnd, StoredStep } from '../store/steps.ts'
import { type CommandWatch, isForgotten } from '../commands/command-watch.ts'
import type { Context } from '../app/context.ts'
import type { OutputItem } from '@airlock/wire'
import type { OpenOutput } from '../commands/recorded-run.ts'
import { resumedOutput } from '../commands/resumed-output.ts'
import { endOf, isUnended } from './step-book.ts'
import { StepSaid } from './step-said.ts'

/** What is there already comes at once. */
const PRESENT_MS = 30_000

export interface AskedEvents {
  readonly from: number
  readonly follow: boolean
  readonly signal: AbortSignal
}

interface Followed extends Pick<Context, 'store' | 'dataPlane'> {
  readonly watch: CommandWatch<StoredStep, StepEnd>
  readonly row: StoredStep
  show(row: StoredStep): Step
  /** Its output from the beginning, when it was just started. */
  readonly open: OpenOutput | undefined
}

/**
 * What a step said from `from` on, and how it ended. With `follow` it goes on to the end, over a restart of the data plane
 * too, and nothing comes twice or is missed; without, it stops where the output stands now. The step goes on when nobody
 * listens any more.
 */
export async function* stepEvents(of: Followed, asked: AskedEvents): AsyncGenerator<StepEvent> {
  const isWaiting = asked.follow || !isUnended(of.row)
  const signal = isWaiting ? asked.signal : deadline(PRESENT_MS, asked.signal)
  const said = new StepSaid(asked.from)
  let node: NodeCommand | undefined
  try {
    yield { event: 'started', step: of.show(of.row) }
    const until = isWaiting ? Infinity : await presentEnd(of)
    if (asked.from >= until) return
    for await (const item of outputOf(of, { from: asked.from, signal })) {
      if (item.kind === 'end') {
        node = item.command
        of.open?.close()
      } else yield* said.take(item)
      if (endOfItem(item) >= until) return
    }
  } catch (error) {
    if (!isForgotten(error)) throw error
  } finally {
    of.open?.letGo()
  }
  yield* ending(of, await lastOf(of, { node, said, signal }), node === undefined)
}

function endOfItem(item: OutputItem): number {
  return item.kind === 'bytes' ? item.offset + item.bytes.length : 0
}

/** How it ended: as its row says, as its stream said, or as the watch finds out. */
async function lastOf(
  of: Followed,
  seen: { readonly node: NodeCommand | undefined; readonly said: StepSaid; readonly signal: AbortSignal },
): Promise<StoredStep> {
  if (!isUnended(of.row)) return of.row
  if (seen.node) return of.watch.finish(of.row, endOf(seen.node, seen.said.error))
  return untilAborted(of.watch.watch(of.row), seen.signal)
}

/** A step whose output is kept no longer has its result all the same. */
function* ending(of: Followed, last: StoredStep, isOutputGone: boolean): Generator<StepEvent> {
  // We stop before the result is written: the next life tells it.
  if (isUnended(last)) throw new AirlockError('not_ready', 'The server is stopping.')
  const truncated = last.truncated || (isOutputGone && last.outputBytes > 0)
  if (truncated) yield { event: 'truncated', limitBytes: last.maxOutputBytes }
  yield { event: 'ended', step: { ...of.show(last), truncated } }
}

function outputOf(
  of: Followed,
  asked: { readonly from: number; readonly signal: AbortSignal },
): AsyncGenerator<OutputItem> {
  const ref = { sandbox: of.row.sandbox, command: of.row.id }
  const { store, dataPlane } = of
  return resumedOutput({ store, dataPlane, ref }, { ...asked, isRichWhole: asked.from > 0, first: of.open?.items })
}

/** How much a running step has said; no bound when it has ended, for then the stream ends by itself. */
async function presentEnd(of: Followed): Promise<number> {
  try {
    const node = await of.dataPlane.command({ sandbox: of.row.sandbox, command: of.row.id })
    return node.state === 'running' ? node.outputBytes : Infinity
  } catch (error) {
    if (isForgotten(error)) return Infinity
    throw error
  }
}
