import { Airlock, type Session, type Step } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { reportFailure } from '../failure.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { renderFacts, renderTable, type Cell, type Row } from '../text/table.ts'
import { formatDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const PAGE = 200
/** More than any node holds; whoever has more asks by sandbox. */
const MOST = 10_000
const STEPS = 20

export function defineSession(session: Command, context: Context): void {
  addLs(session, context)
  addInspect(session, context)
  addInterrupt(session, context)
  addRestart(session, context)
  addRm(session, context)
}

interface LsOptions extends JsonOption {
  readonly all?: boolean
  readonly sandbox?: string
}

function addLs(session: Command, context: Context): void {
  withJson(session.command('ls').description('List sessions, newest first.'))
    .option('-a, --all', 'also those that have ended')
    .option('--sandbox <sandbox>', 'only those of this sandbox, by id or name')
    .action(async (options: LsOptions) => {
      const { terminal } = context
      const found = await listAll(new Airlock(), options)
      if (options.json === true) return terminal.printJson(found.map((one) => one.data))
      if (found.length === 0) return terminal.note('There are no sessions. Start one with "airlock python".')
      const head = ['ID', 'RUNTIME', 'STATE', 'SANDBOX', 'AGE', 'EXPIRES']
      await terminal.print(renderTable(terminal, head, found.map(sessionRow)))
    })
}

async function listAll(airlock: Airlock, options: LsOptions): Promise<readonly Session[]> {
  const sandbox = options.sandbox === undefined ? undefined : (await findSandbox(airlock, options.sandbox)).id
  const state = options.all === true ? ('all' as const) : undefined
  const found: Session[] = []
  let cursor: string | undefined
  do {
    const page = await airlock.sessions.list({ limit: PAGE, state, sandbox, cursor })
    found.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && found.length < MOST)
  return found
}

function sessionRow({ data }: Session): Row {
  const expires = data.endedAt === null ? `in ${formatDuration(Date.parse(data.expiresAt) - Date.now())}` : '-'
  const age = formatDuration(Date.now() - Date.parse(data.createdAt))
  return [data.id, data.runtime, stateCell(data), data.sandbox, age, expires]
}

function stateCell(data: Session['data']): Cell {
  const text = data.endReason === null ? data.state : `${data.state} (${data.endReason})`
  return { text, style: data.state === 'active' ? 'green' : 'dim' }
}

function addInspect(session: Command, context: Context): void {
  withJson(session.command('inspect').description('Look at one session and its latest steps.'))
    .argument('<session>', 'its id')
    .action(async (id: string, options: JsonOption) => {
      const { terminal } = context
      const found = await new Airlock().sessions.get(id)
      const steps = (await found.steps({ limit: STEPS })).items
      if (options.json === true) return terminal.printJson({ ...found.data, steps })
      await terminal.print(renderFacts(terminal, factsOf(found.data)))
      if (steps.length === 0) return
      await terminal.print(`\n${renderTable(terminal, ['STEP', 'STATUS', 'TOOK', 'ERROR'], steps.map(stepRow))}`)
    })
}

function factsOf(data: Session['data']): readonly (readonly [string, string | Cell])[] {
  const labels = Object.entries(data.labels).map(([key, value]) => `${key}=${value}`)
  return [
    ['id', data.id],
    ['state', stateCell(data)],
    ['runtime', `${data.runtime}, ${data.runtimeVersion}`],
    ['sandbox', data.ownsSandbox ? `${data.sandbox}, which ends with it` : data.sandbox],
    ['agent', `${data.agent} of ${data.tenant}`],
    ['labels', labels.join(', ') || '-'],
    ['restarts', String(data.restarts)],
    ['created', data.createdAt],
    ['last used', data.lastActiveAt],
    data.endedAt === null ? ['expires', data.expiresAt] : ['ended', data.endedAt],
  ]
}

function stepRow(step: Step): Row {
  const took = step.durationMs === null ? '-' : formatShort(step.durationMs)
  const failed = step.error ? `${step.error.name}: ${step.error.message}`.slice(0, 80) : '-'
  const status = step.restarted ? `${step.status} (restarted)` : step.status
  return [step.id, step.status === 'failed' ? { text: status, style: 'red' } : status, took, failed]
}

/** Most steps take less than a second. */
function formatShort(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)}ms` : formatDuration(ms)
}

function addInterrupt(session: Command, context: Context): void {
  withJson(session.command('interrupt').description('Interrupt the step that runs, like Ctrl-C.'))
    .argument('<session>', 'its id')
    .action(async (id: string, options: JsonOption) => {
      await (await new Airlock().sessions.get(id)).interrupt()
      await (options.json === true ? context.terminal.printJson({ id }) : context.terminal.print(id))
    })
}

function addRestart(session: Command, context: Context): void {
  withJson(session.command('restart').description('Start the interpreter anew; what it remembered is gone.'))
    .argument('<session>', 'its id')
    .action(async (id: string, options: JsonOption) => {
      const { data } = await (await new Airlock().sessions.get(id)).restart()
      await (options.json === true ? context.terminal.printJson(data) : context.terminal.print(id))
    })
}

function addRm(session: Command, context: Context): void {
  withJson(session.command('rm').description('End sessions, and the sandboxes that were made for them.'))
    .argument('<session...>', 'their ids')
    .action(async (ids: readonly string[], options: JsonOption) => {
      const { terminal } = context
      const airlock = new Airlock()
      const ended: Session['data'][] = []
      for (const id of ids) {
        try {
          ended.push((await (await airlock.sessions.get(id)).terminate()).data)
          if (options.json !== true) await terminal.print(id)
        } catch (error) {
          // The others are ended all the same.
          context.exitCode = reportFailure(terminal, error)
        }
      }
      if (options.json === true) await terminal.printJson(ended)
    })
}
