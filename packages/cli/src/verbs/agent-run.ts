import { Airlock, type JobState, type RunData, type RunSummary } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import type { Context } from '../context.ts'
import { reportFailure } from '../failure.ts'
import { listPages } from '../list-pages.ts'
import { OutputPrinter } from '../run/attach.ts'
import { printRun } from '../run/follow-run.ts'
import { renderFacts, renderTable, type Cell, type Row } from '../text/table.ts'
import { formatDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const PAGE = 200
const STATES: readonly JobState[] = ['queued', 'running', 'succeeded', 'failed', 'canceled']

export function defineAgentRun(runs: Command, context: Context): void {
  addLs(runs, context)
  addInspect(runs, context)
  addEvents(runs, context)
  addLogs(runs, context)
  addCancel(runs, context)
}

interface LsOptions extends JsonOption {
  readonly state?: JobState
  readonly agent?: string
}

function addLs(runs: Command, context: Context): void {
  withJson(runs.command('ls').description('List runs, newest first.'))
    .addOption(new Option('--state <state>', 'only those').choices(STATES))
    .option('--agent <agent>', 'only those of this agent')
    .action(async ({ state, agent, json }: LsOptions) => {
      const { terminal } = context
      const airlock = new Airlock()
      const found = await listPages(async (cursor) => airlock.runs.list({ state, agent, limit: PAGE, cursor }))
      if (json === true) return terminal.printJson(found)
      if (found.length === 0) return terminal.note('There are no runs. Start one with "airlock ask sandbox:agent".')
      await terminal.print(renderTable(terminal, ['ID', 'STATE', 'PROGRAM', 'MODEL', 'AGENT', 'AGE'], found.map(rowOf)))
    })
}

function rowOf(run: RunSummary): Row {
  const age = formatDuration(Date.now() - Date.parse(run.createdAt))
  return [run.id, stateCell(run), run.graph, run.model, run.agent, age]
}

function stateCell({ state, error }: Pick<RunSummary, 'state' | 'error'>): Cell {
  const style = state === 'succeeded' ? 'green' : state === 'failed' ? 'red' : 'dim'
  return { text: state === 'failed' && error ? `${state} (${error.code})` : state, style }
}

function addInspect(runs: Command, context: Context): void {
  withJson(runs.command('inspect').description('Look at one run, its answer and what it used.'))
    .argument('<run>', 'its id')
    .action(async (id: string, options: JsonOption) => {
      const { terminal } = context
      const { data } = await new Airlock().runs.get(id)
      if (options.json === true) return terminal.printJson(data)
      await terminal.print(renderFacts(terminal, factsOf(data)))
      const text = data.result?.payloads.map((payload) => payload.text).join('\n\n')
      if (text !== undefined) await terminal.print(`\n${text}`)
    })
}

function factsOf(run: RunData): readonly (readonly [string, string | Cell])[] {
  const { usage } = run
  return [
    ['id', run.id],
    ['state', stateCell(run)],
    ['why', run.error?.message ?? '-'],
    ['program', `${run.graph} ${run.version}`],
    ['model', run.model],
    ['agent', `${run.agent} of ${run.tenant}`],
    ['calls', `${usage.calls}${usage.estimatedCalls > 0 ? ` (~${usage.estimatedCalls})` : ''}`],
    ['tokens', `${usage.inputTokens} in, ${usage.outputTokens} out`],
    ['dollars', `${usage.dollars}`],
    ['sandbox', run.sandbox ?? '-'],
    ['created', run.createdAt],
    ['started', run.startedAt ?? '-'],
    ['ended', run.endedAt ?? '-'],
  ]
}

function addEvents(runs: Command, context: Context): void {
  withJson(runs.command('events').description('Print the answer of a run from its beginning, until it is done.'))
    .argument('<run>', 'its id')
    .action(async (id: string, options: JsonOption) => {
      const run = await new Airlock().runs.get(id)
      await printRun(context.terminal, run.events(), options.json === true)
    })
}

function addLogs(runs: Command, context: Context): void {
  withJson(runs.command('logs').description('Print what the program of a run has printed, which is not its answer.'))
    .argument('<run>', 'its id')
    .action(async (id: string, options: JsonOption) => {
      const { terminal } = context
      const log = await (await new Airlock().runs.get(id)).log()
      if (options.json === true) return terminal.printJson(log)
      const printer = new OutputPrinter(terminal)
      await printer.write('stdout', Buffer.from(log.stdout))
      await printer.write('stderr', Buffer.from(log.stderr))
      await printer.finish()
      if (log.truncated) terminal.note('airlock: a part of what it printed is not in the log.')
    })
}

function addCancel(runs: Command, context: Context): void {
  withJson(runs.command('cancel').description('Cancel runs. One that has ended stays as it is.'))
    .argument('<run...>', 'their ids')
    .action(async (ids: readonly string[], options: JsonOption) => {
      const { terminal } = context
      const { runs: all } = new Airlock()
      const canceled: RunData[] = []
      for (const id of ids) {
        try {
          canceled.push((await (await all.get(id)).cancel()).data)
          if (options.json !== true) await terminal.print(id)
        } catch (error) {
          // The others are canceled all the same.
          context.exitCode = reportFailure(terminal, error)
        }
      }
      if (options.json === true) await terminal.printJson(canceled)
    })
}
