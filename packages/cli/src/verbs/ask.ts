import { DEFAULTS } from '@airlock/contract/defaults'
import type { RunMessage, RunOptions } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { waitApprovalOption, waitingAirlock } from '../options/command-options.ts'
import { followRun } from '../run/follow-run.ts'
import { readStdin } from '../run/read-code.ts'
import { collectPairs } from '../text/pairs.ts'
import { durationWithin, numberWithin } from '../text/units.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface AskOptions extends JsonOption {
  readonly detach?: boolean
  readonly model?: string
  readonly system?: string
  readonly dollars?: number
  readonly calls?: number
  readonly tokens?: number
  readonly timeout?: number
  readonly agent?: string
  readonly label?: Readonly<Record<string, string>>
  readonly key?: string
  readonly waitApproval?: number
}

export function defineAsk(ask: Command, context: Context): void {
  withJson(ask)
    .argument('<program>', 'its name in the catalog, such as sandbox:agent')
    .argument('[message...]', 'what to ask (default: what is piped in)')
    .option('--model <name>', 'a model that the program may use (default: the first of the program)')
    .option('--system <text>', 'a message of the system before yours')
    .option('--dollars <amount>', 'what its model calls may cost', numberWithin(DEFAULTS.sandboxModelDollars))
    .option('--calls <count>', 'its model calls at most', numberWithin(DEFAULTS.sandboxModelCalls))
    .option('--tokens <count>', 'tokens of its model calls at most', numberWithin(DEFAULTS.sandboxModelTokens))
    .option('--timeout <duration>', 'less than the timeout of the program', durationWithin(DEFAULTS.runTimeoutMs))
    .option('--agent <agent>', 'who it runs for (default: the agent of your key)')
    .option('--label <key=value>', 'a label; may be given several times', collectPairs)
    .option('--key <key>', 'an idempotency key: the same key again answers the first run')
    .option('-d, --detach', 'print the id of the run and leave it')
    .addOption(waitApprovalOption())
    .action(async (program: string, words: readonly string[], options: AskOptions) => {
      const { terminal } = context
      const messages = await messagesOf(words, options)
      const run = await waitingAirlock(options).runs.start(program, messages, toRunOptions(options))
      if (options.detach !== true) return followRun(terminal, run, options.json === true)
      await (options.json === true ? terminal.printJson(run.data) : terminal.print(run.id))
    })
}

async function messagesOf(words: readonly string[], { system }: AskOptions): Promise<readonly RunMessage[]> {
  const content = words.length > 0 ? words.join(' ') : await piped()
  const asked = { role: 'user', content } as const
  return system === undefined ? [asked] : [{ role: 'system', content: system }, asked]
}

async function piped(): Promise<string> {
  if (process.stdin.isTTY)
    throw new UsageError('Nothing was asked.', 'Say it after the name: airlock ask sandbox:agent "What is a cgroup?"')
  return readStdin('input')
}

function toRunOptions(options: AskOptions): RunOptions {
  const { model, agent, timeout: timeoutMs, label: labels, key: idempotencyKey, dollars, calls, tokens } = options
  const budget = Object.fromEntries(Object.entries({ dollars, calls, tokens }).filter(([, most]) => most !== undefined))
  return { model, agent, timeoutMs, labels, idempotencyKey, budget }
}
