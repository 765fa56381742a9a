import { Airlock, type MetricResolution, type MetricsOptions } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { parseMoment } from '../text/moment.ts'
import { followAgent, followSandbox } from '../monitor/follow-metrics.ts'
import { agentText, sandboxText } from '../monitor/metrics-view.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface Options extends JsonOption {
  readonly agent?: string
  readonly resolution: MetricResolution
  readonly since?: string
  readonly follow?: boolean
}

export function defineMetrics(metrics: Command, context: Context): void {
  withJson(metrics)
    .argument('[sandbox]', 'its id or name')
    .option('--agent <agent>', 'all sandboxes of this agent, together and each')
    .addOption(
      new Option('--resolution <span>', 'how fine the history is: kept for 15 minutes, a day, a week')
        .choices(['5s', '1m', '15m'])
        .default('5s'),
    )
    .option('--since <time>', 'only the history since this time, or this long ago, like 1h', parseMoment)
    .option('-f, --follow', 'print each sample and alert of a sandbox, or the sums of an agent, as they come')
    .addHelpText('after', '\nWith --follow and --json, one event of a sandbox or one answer for an agent a line.')
    .action(async (target: string | undefined, options: Options) => {
      if ((target === undefined) === (options.agent === undefined))
        metrics.error('Say what: a sandbox, or --agent with its name.')
      if (target !== undefined) await showSandbox(context, target, options)
      else if (options.agent !== undefined) await showAgent(context, options.agent, options)
    })
}

async function showSandbox(context: Context, target: string, options: Options): Promise<void> {
  const { terminal } = context
  const sandbox = await findSandbox(new Airlock(), target)
  if (options.follow === true) return followSandbox(context, sandbox, { json: options.json === true })
  const metrics = await sandbox.metrics(queryOf(options))
  if (options.json === true) await terminal.printJson(metrics)
  else await terminal.print(sandboxText(terminal, metrics))
}

async function showAgent(context: Context, agent: string, options: Options): Promise<void> {
  const { terminal } = context
  const api = new Airlock().metrics
  if (options.follow === true) {
    const look = async (signal: AbortSignal) => api.agent(agent, { since: new Date().toISOString(), signal })
    return followAgent(context, look, { json: options.json === true })
  }
  const metrics = await api.agent(agent, queryOf(options))
  if (options.json === true) await terminal.printJson(metrics)
  else await terminal.print(agentText(terminal, metrics))
}

function queryOf({ resolution, since }: Options): MetricsOptions {
  return { resolution, since }
}
