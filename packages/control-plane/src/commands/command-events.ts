import { isUtf8 } from 'node:buffer'
import { AirlockError, type CommandEvent, type NodeCommand } from '@airlock/contract'
import { deadline, untilAborted } from '@airlock/std'
import type { CommandEnd, StoredCommand } from '../store/commands.ts'
import { type CommandWatch, isForgotten } from './command-watch.ts'
import type { Context } from '../app/context.ts'
import type { CommandRef } from './command-ref.ts'
import { toCommand, toCommandEnd } from '../sandboxes/nouns.ts'
import type { OpenOutput } from './recorded-run.ts'
import { resumedOutput } from './resumed-output.ts'

/** What is there already comes at once. */
const PRESENT_MS = 30_000

type Followed = Pick<Context, 'store' | 'dataPlane'> & {
  readonly watch: CommandWatch<StoredCommand, CommandEnd>
  readonly row: StoredCommand
  /** The output of a command that was just started, from its beginning. */
  readonly open: OpenOutput | undefined
}

interface Asked {
  readonly from: number
  readonly follow: boolean
  readonly signal: AbortSignal
}

/**
 * What a command said from `from` on, and how it ended. With `follow` it goes on to the end, over a restart of the data
 * plane too, and no byte comes twice or is missed; without, it stops where the output stands now.
 */
export async function* commandEvents(of: Followed, asked: Asked): AsyncGenerator<CommandEvent> {
  for await (const event of allCommandEvents(of, asked)) if (event.event !== 'event_output') yield event
}

/** Bytes of the event output of a command. `offset` counts the bytes of all outputs together. */
export interface EventOutput {
  readonly event: 'event_output'
  readonly offset: number
  readonly bytes: Buffer
}

/** The same with the bytes of the event output, for the caller that started the command with one. */
export async function* allCommandEvents(of: Followed, asked: Asked): AsyncGenerator<CommandEvent | EventOutput> {
  const { row } = of
  yield { event: 'started', command: toCommand(row) }
  const until = asked.follow ? undefined : await presentEnd(of)
  if (until !== undefined && asked.from >= until) return
  const signal = asked.follow ? asked.signal : deadline(PRESENT_MS, asked.signal)
  const node = yield* output(of, { from: asked.from, follow: asked.follow, until, signal })
  if (node !== 'enough') yield* ending(await lastOf(of, { node, signal }))
}

/** Its output as events. Answers its end, if the stream told it, or that it has said all that was asked for. */
async function* output(
  of: Followed,
  asked: Asked & { readonly until: number | undefined },
): AsyncGenerator<CommandEvent | EventOutput, NodeCommand | 'enough' | undefined> {
  const { from, signal, until } = asked
  const { open, store, dataPlane } = of
  const source = { store, dataPlane, ref: refOf(of) }
  try {
    for await (const item of resumedOutput(source, { from, signal, first: open?.items })) {
      if (item.kind === 'end') {
        open?.close()
        return item.command
      }
      const after = item.offset + item.bytes.length
      if (item.stream === 'rich') yield { event: 'event_output', offset: after, bytes: item.bytes }
      else yield { event: 'output', stream: item.stream, offset: after, ...textOf(item.bytes) }
      if (until !== undefined && after >= until) return 'enough'
    }
    return undefined
  } catch (error) {
    // A running command that the node does not know never arrived there, or is lost: the watch writes that down.
    if (of.row.state !== 'running' || !isForgotten(error)) throw error
    return undefined
  } finally {
    open?.letGo()
  }
}

/** How it ended: as its row says, as its stream said, or as the watch finds out. */
async function lastOf(
  of: Followed,
  seen: { readonly node: NodeCommand | undefined; readonly signal: AbortSignal },
): Promise<StoredCommand> {
  const { row } = of
  if (row.state !== 'running') return row
  if (seen.node) return of.watch.finish(row, toCommandEnd(seen.node))
  return untilAborted(of.watch.watch(row), seen.signal)
}

/** How much a running command has said; undefined when it has ended, for then the stream ends by itself. */
async function presentEnd(of: Followed): Promise<number | undefined> {
  const node = await of.dataPlane.command(refOf(of))
  return node.state === 'running' ? node.outputBytes : undefined
}

function refOf({ row }: Followed): CommandRef {
  return { sandbox: row.sandbox, command: row.id }
}

function* ending(row: StoredCommand): Generator<CommandEvent> {
  // We stop before the result is written: the next life tells it.
  if (row.state === 'running') throw new AirlockError('not_ready', 'The server is stopping.')
  if (row.truncated) yield { event: 'truncated', limitBytes: row.maxOutputBytes }
  yield { event: 'ended', command: toCommand(row) }
}

/** Text where it is whole UTF-8, base64 where it is not: nothing is lost. */
export function textOf(bytes: Buffer): { readonly text: string } | { readonly base64: string } {
  return isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') }
}
