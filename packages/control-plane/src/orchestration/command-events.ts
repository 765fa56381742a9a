import { isUtf8 } from 'node:buffer'
import { AirlockError, type CommandEvent, type ErrorCode, isAirlockError } from '@airlock/contract'
import { deadline, sleep } from '@airlock/std'
import { findCommand, type StoredCommand } from '../store/commands.ts'
import { findSandbox } from '../store/sandboxes.ts'
import type { CommandWatch } from './command-watch.ts'
import type { Context } from './context.ts'
import type { Caller, CommandRef } from './core.ts'
import type { OutputItem } from './data-plane-output.ts'
import { isEnded } from './lifecycle.ts'
import { toCommand } from './nouns.ts'
import { usableSandbox } from './owned-sandbox.ts'
import { untilAborted } from './until-aborted.ts'

const RETRY_MS = 250
/** Longer than the data plane needs to be restarted. */
const SILENT_TRIES = 60
/** What is there already comes at once. */
const PRESENT_MS = 30_000

type Followed = Pick<Context, 'store' | 'dataPlane' | 'node'> & {
  readonly watch: CommandWatch
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
  await usableSandbox(of, caller, of.ref.sandbox)
  const row = await of.store.query((db) => findCommand(db, of.ref))
  if (!row) throw new AirlockError('command_not_found')
  yield { event: 'started', command: toCommand(row) }
  const until = asked.follow ? undefined : await presentEnd(of)
  if (until !== undefined && asked.from >= until) return
  const signal = asked.follow ? asked.signal : deadline(PRESENT_MS, asked.signal)
  for await (const item of resumedOutput(of, { from: asked.from, signal })) {
    if (item.kind === 'end') break
    const after = item.offset + item.bytes.length
    yield { event: 'output', stream: item.stream, offset: after, ...textOf(item.bytes) }
    if (until !== undefined && after >= until) return
  }
  const last = row.state === 'running' ? await untilAborted(of.watch.watch(row), signal) : row
  // We stop before the result is written: the next life tells it.
  if (last.state === 'running') throw new AirlockError('not_ready', 'The server is stopping.')
  yield* ending(last)
}

/** How much a running command has said; undefined when it has ended, for then the stream ends by itself. */
async function presentEnd(of: Followed): Promise<number | undefined> {
  const node = await of.dataPlane.command(of.ref)
  return node.state === 'running' ? node.outputBytes : undefined
}

/** The output over as many connections as it takes. Stops without an `end` when the sandbox ended meanwhile. */
async function* resumedOutput(of: Followed, asked: Omit<Asked, 'follow'>): AsyncGenerator<OutputItem> {
  let { from } = asked
  for (let silent = 1; silent <= SILENT_TRIES; silent++) {
    for await (const item of outputUntilBroken(of, { from, signal: asked.signal })) {
      yield item
      if (item.kind === 'end') return
      from = item.offset + item.bytes.length
      silent = 0
    }
    const sandbox = await of.store.query((db) => findSandbox(db, of.ref.sandbox))
    if (!sandbox || isEnded(sandbox.state)) return
    await sleep(RETRY_MS, asked.signal)
  }
  throw new AirlockError('data_plane_unavailable')
}

async function* outputUntilBroken(of: Followed, asked: Omit<Asked, 'follow'>): AsyncGenerator<OutputItem> {
  try {
    yield* of.dataPlane.output(of.ref, asked)
  } catch (error) {
    asked.signal.throwIfAborted()
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
  'guest_lost',
])

function* ending(row: StoredCommand): Generator<CommandEvent> {
  if (row.truncated) yield { event: 'truncated', limitBytes: row.maxOutputBytes }
  yield { event: 'ended', command: toCommand(row) }
}

/** Text where it is whole UTF-8, base64 where it is not: nothing is lost. */
function textOf(bytes: Buffer): { readonly text: string } | { readonly base64: string } {
  return isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') }
}
