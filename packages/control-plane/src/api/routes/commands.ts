import type { Command, CommandEvent, CommandResult } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import type { CommandRef } from '../../commands/command-ref.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

/** What the JSON form of an output holds at most; all there is comes as events. */
const JSON_OUTPUT_BYTES = 16 * 1024 * 1024

export function commandHandlers(commands: App['commands']) {
  return {
    runCommand: async ({ caller, params, body, wants, signal }) => {
      const started = await commands.run(caller, params.id, body)
      if (body.background) return json({ ...started, stdout: '', stderr: '' } satisfies CommandResult)
      const of = { sandbox: params.id, command: started.id }
      const events = commands.events(caller, of, { from: 0, follow: true, signal })
      if (wants === 'events') return { kind: 'events', events: startingWith(started, events) }
      return json(await collect(events, () => commands.get(caller, of)))
    },
    listCommands: async ({ caller, params, query }) => json(await commands.list(caller, params.id, query)),
    getCommand: async ({ caller, params }) => json(await commands.get(caller, refTo(params))),
    commandOutput: async ({ caller, params, query, wants, lastEventId, signal }) => {
      const of = refTo(params)
      const from = lastEventId ?? query.from
      const follow = wants === 'events'
      const now = await commands.get(caller, of)
      const events = commands.events(caller, of, { from, follow, signal })
      if (follow) return { kind: 'events', events: startingWith(now, events) }
      return json(await collect(events, () => commands.get(caller, of)))
    },
    fullCommandOutput: async ({ caller, params, signal }) => {
      const { size, bytes } = await commands.fullOutput(caller, refTo(params), signal)
      return { kind: 'bytes', size, bytes }
    },
    signalCommand: async ({ caller, params, body }) => {
      await commands.signal(caller, refTo(params), body.signal)
      return NOTHING
    },
    writeStdin: async ({ caller, params, query, bytes }) => {
      await commands.writeStdin(caller, refTo(params), { bytes, end: query.end })
      return NOTHING
    },
  } satisfies Partial<Handlers>
}

function refTo(params: { readonly id: string; readonly command: string }): CommandRef {
  return { sandbox: params.id, command: params.command }
}

/** Whatever the core says first, a stream begins with exactly one `started`. */
async function* startingWith(command: Command, events: AsyncIterable<CommandEvent>): AsyncGenerator<CommandEvent> {
  yield { event: 'started', command }
  for await (const event of events) if (event.event !== 'started') yield event
}

/** The output as text, lossy where it is not UTF-8, and how the command stands after it. */
async function collect(events: AsyncIterable<CommandEvent>, look: () => Promise<Command>): Promise<CommandResult> {
  const chunks: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  let left = JSON_OUTPUT_BYTES
  let cut = false
  let ended: Command | undefined
  for await (const event of events) {
    if (event.event === 'ended') ended = event.command
    if (event.event !== 'output') continue
    const bytes = event.base64 === undefined ? Buffer.from(event.text ?? '') : Buffer.from(event.base64, 'base64')
    chunks[event.stream].push(bytes.subarray(0, left))
    cut ||= bytes.length > left
    left -= Math.min(left, bytes.length)
  }
  const command = ended ?? (await look())
  return { ...command, truncated: command.truncated || cut, ...decoded(chunks) }
}

function decoded(chunks: Readonly<Record<'stdout' | 'stderr', Buffer[]>>): { stdout: string; stderr: string } {
  return {
    stdout: Buffer.concat(chunks.stdout).toString('utf8'),
    stderr: Buffer.concat(chunks.stderr).toString('utf8'),
  }
}
