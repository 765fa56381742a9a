import { Airlock, type AuditEvent, type EventOptions } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { eventLine } from '../text/event-line.ts'
import { Interrupts } from '../run/interrupts.ts'
import { parseMoment } from '../text/moment.ts'
import { parseNumber } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface Options extends JsonOption, EventOptions {
  readonly follow?: boolean
  readonly limit: number
}

export function defineEvents(events: Command, context: Context): void {
  withJson(events)
    .option('-f, --follow', 'go on with what happens, until Ctrl-C')
    .option('--agent <agent>', 'only of this agent')
    .option('--sandbox <id>', 'only of this sandbox')
    .option('--point <points>', 'only of these kinds, like command.run or sandbox.*, separated by commas')
    .option('--status <statuses>', 'only with these statuses, like denied,failed')
    .option('--since <time>', 'only later than this time, or this long ago, like 1h', parseMoment)
    .option('--after <seq>', 'only after this record', parseNumber)
    .option('--limit <number>', 'how many at most, without --follow', parseNumber, 50)
    .addHelpText('after', '\nWith --json, one record a line.')
    .action(async ({ json, follow, limit, ...query }: Options) => {
      const airlock = new Airlock({ role: 'admin' })
      const print = async (event: AuditEvent): Promise<void> => {
        const { terminal } = context
        await (json === true ? terminal.printJson(event, 'line') : terminal.print(eventLine(terminal, event)))
      }
      if (follow === true) return followEvents(context, { airlock, query, print })
      for (const event of (await airlock.eventPage({ ...query, limit })).items) await print(event)
    })
}

interface Following {
  readonly airlock: Airlock
  readonly query: EventOptions
  readonly print: (event: AuditEvent) => Promise<void>
}

/** Ctrl-C is how it ends, so that is no failure. */
async function followEvents(context: Context, { airlock, query, print }: Following): Promise<void> {
  using interrupts = new Interrupts()
  const onGap = (seq: number): void =>
    context.terminal.note(`Records up to ${seq} were dropped before they could be read.`)
  try {
    for await (const event of airlock.events({ ...query, onGap, signal: interrupts.asked })) await print(event)
  } catch (error) {
    if (!interrupts.asked.aborted) throw error
    context.exitCode = interrupts.exitCode
  }
}
