import { Airlock } from '@airlock/sdk'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Context } from '../context.ts'
import { printTop, watchTop, type TopOptions } from '../monitor/watch-top.ts'
import { TOP_SORTS, type TopSort } from '../monitor/top-view.ts'
import { formatDuration, parseDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const EVERY_MS = { default: 2_000, min: 500, max: 3_600_000 }

interface Options extends JsonOption {
  readonly agent?: string
  readonly sort: TopSort
  readonly every: number
  readonly once?: boolean
}

export function defineTop(top: Command, context: Context): void {
  withJson(top)
    .option('--agent <agent>', 'only those of this agent')
    .addOption(new Option('--sort <by>', 'what comes first').choices(TOP_SORTS).default('cpu'))
    .addOption(
      new Option('--every <duration>', 'how often it is shown anew')
        .argParser(parseEvery)
        .default(EVERY_MS.default, formatDuration(EVERY_MS.default)),
    )
    .option('--once', 'show it once, as lines')
    .addHelpText('after', HELP)
    .action(async ({ agent, sort, every, once, json }: Options) => {
      const { metrics } = new Airlock()
      const options: TopOptions = {
        agent,
        sort,
        everyMs: every,
        look: async (signal) => metrics.all({ agent, signal }),
      }
      const isLive = context.terminal.isTty && context.canDraw && once !== true && json !== true
      if (isLive) await watchTop(context, options)
      else await printTop(context, { ...options, once: once === true, json: json === true })
    })
}

const HELP = `
At a terminal it shows them in place: q quits, s changes the order, arrows scroll. Elsewhere it prints a table every time.
With --json, one object a line. How often the server looks is its own setting (monitor_every_s).`

function parseEvery(text: string): number {
  const ms = parseDuration(text)
  if (ms < EVERY_MS.min || ms > EVERY_MS.max) throw new InvalidArgumentError('Use 500ms to 1h.')
  return ms
}
