import type { Command, CommandEvent, CommandResult } from '@airlock/contract'
import type { App } from '../../app/app.ts'
import type { CommandRef } from '../../commands/command-ref.ts'
import { json, NOTHING, type Handlers } from '../call.ts'
import { RunText } from '../run-text.ts'

export function commandHandlers(commands: App['commands']) {
  return {
    runCommand: async ({ caller, params, body, wants, signal }) => {
      const { noun, events } = await commands.run(
        caller,
        params.id,
        body.background ? body : { ...body, follow: signal },
      )
      if (body.background) return json({ ...noun, stdout: '', stderr: '' } satisfies CommandResult)
      if (wants === 'events') return { kind: 'events', events }
      return json(await collect(events, () => commands.get(caller, { sandbox: params.id, command: noun.id })))
    },
    listCommands: async ({ caller, params, query }) => json(await commands.list(caller, params.id, query)),
    getCommand: async ({ caller, params }) => json(await commands.get(caller, refTo(params))),
    commandOutput: async ({ caller, params, query, wants, lastEventId, signal }) => {
      const of = refTo(params)
      const from = lastEventId ?? query.from
      const follow = wants === 'events'
      // Refused before the stream begins.
      await commands.get(caller, of)
      const events = commands.events(caller, of, { from, follow, signal })
      if (follow) return { kind: 'events', events }
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

/** The output as text, and how the command stands after it. */
async function collect(events: AsyncIterable<CommandEvent>, look: () => Promise<Command>): Promise<CommandResult> {
  const text = new RunText()
  let ended: Command | undefined
  for await (const event of events) {
    if (event.event === 'ended') ended = event.command
    else if (event.event === 'output') text.add(event)
  }
  return text.of(ended ?? (await look()))
}
