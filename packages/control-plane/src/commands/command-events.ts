import { isUtf8 } from 'node:buffer'
import { AirlockError, type CommandEvent, type NodeCommand } from '@airlock/contract'
import { deadline, untilAborted } from '@airlock/std'
import { type CommandEnd, findCommand, type StoredCommand } from '../store/commands.ts'
import type { CommandWatch } from './command-watch.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import type { CommandRef } from './command-ref.ts'
import { toCommand, toCommandEnd } from '../sandboxes/nouns.ts'
import { readableSandbox } from '../sandboxes/owned-sandbox.ts'
import type { OpenOutputs } from './open-outputs.ts'
import { resumedOutput } from './resumed-output.ts'

/** What is there already comes at once. */
const PRESENT_MS = 30_000

type Followed = Pick<Context, 'store' | 'dataPlane' | 'node'> & {
  readonly watch: CommandWatch<StoredCommand, CommandEnd>
  /** The output of one that was just started, from its beginning, for the first who follows it. */
  readonly takeOutput: OpenOutputs['take']
  readonly ref: CommandRef
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
export async function* commandEvents(of: Followed, caller: Caller, asked: Asked): AsyncGenerator<CommandEvent> {
  for await (const event of allCommandEvents(of, caller, asked)) if (event.event !== 'event_output') yield event
}

/** Bytes of the event output of a command. `offset` counts the bytes of all outputs together. */
export interface EventOutput {
  readonly event: 'event_output'
  readonly offset: number
  readonly bytes: Buffer
}

/** The same with the bytes of the event output, for the one who started the command with one. */
export async function* allCommandEvents(
  of: Followed,
  caller: Caller,
  asked: Asked,
): AsyncGenerator<CommandEvent | EventOutput> {
  await readableSandbox(of, caller, of.ref.sandbox)
  const row = await of.store.query((db) => findCommand(db, of.ref))
  if (!row) throw new AirlockError('command_not_found')
  yield { event: 'started', command: toCommand(row) }
  const until = asked.follow ? undefined : await presentEnd(of)
  if (until !== undefined && asked.from >= until) return
  const signal = asked.follow ? asked.signal : deadline(PRESENT_MS, asked.signal)
  const node = yield* output(of, row, { from: asked.from, follow: asked.follow, until, signal })
  if (node !== 'enough') yield* ending(await lastOf(of, row, { node, signal }))
}

/** Its output as events. Answers its end, if the stream told it, or that it has said all that was asked for. */
async function* output(
  of: Followed,
  row: StoredCommand,
  asked: Asked & { readonly until: number | undefined },
): AsyncGenerator<CommandEvent | EventOutput, NodeCommand | 'enough' | undefined> {
  const { from, signal, until } = asked
  const open = asked.follow && from === 0 ? of.takeOutput(row.id) : undefined
  const leave = () => open?.letGo()
  let node: NodeCommand | undefined
  signal.addEventListener('abort', leave)
  try {
    for await (const item of resumedOutput(of, { from, signal, first: open?.output })) {
      if (item.kind === 'end') node = item.command
      if (item.kind === 'end') continue
      const after = item.offset + item.bytes.length
      if (item.stream === 'rich') yield { event: 'event_output', offset: after, bytes: item.bytes }
      else yield { event: 'output', stream: item.stream, offset: after, ...textOf(item.bytes) }
      if (until !== undefined && after >= until) return 'enough'
    }
    return node
  } finally {
    signal.removeEventListener('abort', leave)
    // Whoever leaves early leaves it to the watch.
    if (!node) leave()
  }
}

/** How it ended: as its row says, as its stream said, or as the watch finds out. */
async function lastOf(
  of: Followed,
  row: StoredCommand,
  seen: { readonly node: NodeCommand | undefined; readonly signal: AbortSignal },
): Promise<StoredCommand> {
  if (row.state !== 'running') return row
  if (seen.node) return of.watch.finish(row, toCommandEnd(seen.node))
  return untilAborted(of.watch.watch(row), seen.signal)
}

/** How much a running command has said; undefined when it has ended, for then the stream ends by itself. */
async function presentEnd(of: Followed): Promise<number | undefined> {
  const node = await of.dataPlane.command(of.ref)
  return node.state === 'running' ? node.outputBytes : undefined
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
