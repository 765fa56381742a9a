import { Airlock, type KillReport, type KillTarget } from '@airlock/sdk'
import type { Command } from 'commander'
import { isConfirmed } from '../confirm.ts'
import type { Context } from '../context.ts'
import { findSandbox, isSandboxId } from '../run/find-sandbox.ts'
import { withProgress } from '../text/progress.ts'
import { renderTable, type Cell, type Row } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface Options extends JsonOption {
  readonly sandbox?: string
  readonly agent?: string
  readonly tenant?: string
  readonly all?: boolean
  readonly reason?: string
  readonly lift?: boolean
  readonly ls?: boolean
  readonly yes?: boolean
}

/** What may still live is worth another exit code than what was refused. */
const UNVERIFIED_CODE = 1

export function defineKill(command: Command, context: Context): void {
  withJson(command)
    .option('--sandbox <sandbox>', 'end this sandbox, by id or name')
    .option('--agent <id>', 'end all sandboxes of this agent, and grant it nothing; with --tenant, of that tenant')
    .option('--tenant <id>', 'end all sandboxes of this tenant, and grant it nothing')
    .option('--all', 'end all sandboxes of the server, and grant nobody anything')
    .option('--reason <text>', 'why, for the evidence and whoever is refused')
    .option('--lift', 'turn it off again')
    .option('--ls', 'list those that are on')
    .option('-y, --yes', 'do not ask')
    .action(async (options: Options) => {
      const airlock = new Airlock({ role: 'admin' })
      const { killswitch } = airlock
      if (options.ls === true) return printList(context, await killswitch.list(), options)
      const named = targetOf(options) ?? command.error('Say what: one of --sandbox, --agent, --tenant and --all.')
      const target = await withId(airlock, named)
      if (options.lift === true) return print(context, await killswitch.lift(target), options)
      const question = `End ${nameOf(target)}, and grant nothing there until it is lifted?`
      const asks = options.yes !== true && target.scope !== 'sandbox'
      if (asks && !(await isConfirmed(context.terminal, question)))
        command.error(`Nothing was killed: to end ${nameOf(target)}, say --yes.`)
      const kill = async () => killswitch.on({ ...target, reason: options.reason })
      const report = await withProgress(context.terminal, () => `Killing ${nameOf(target)}`, kill)
      if (report.unverified.length > 0) context.exitCode = UNVERIFIED_CODE
      await print(context, report, options)
    })
}

function targetOf({ sandbox, agent, tenant, all }: Options): KillTarget | undefined {
  const given = [sandbox, agent, agent === undefined ? tenant : undefined, all].filter((one) => one !== undefined)
  if (given.length !== 1 || (sandbox !== undefined && tenant !== undefined) || (all === true && tenant !== undefined))
    return undefined
  if (sandbox !== undefined) return { scope: 'sandbox', target: sandbox }
  if (agent !== undefined) return { scope: 'agent', target: agent, ...(tenant === undefined ? {} : { tenant }) }
  return tenant === undefined ? { scope: 'all' } : { scope: 'tenant', target: tenant }
}

/** The id of the sandbox that has the name. An id is passed on unseen: another tenant's sandbox can be killed by it. */
async function withId(airlock: Airlock, target: KillTarget): Promise<KillTarget> {
  const { scope, target: named } = target
  if (scope !== 'sandbox' || named === undefined || isSandboxId(named)) return target
  return { scope, target: (await findSandbox(airlock, named)).id }
}

async function print(context: Context, report: KillReport, options: JsonOption): Promise<void> {
  const { terminal } = context
  if (options.json === true) return terminal.printJson(report)
  if (report.sandboxes.length > 0) {
    const head = ['SANDBOX', 'NODE', 'PROCESSES', 'FROZEN', 'GONE', 'VERIFIED']
    await terminal.print(renderTable(terminal, head, report.sandboxes.map(sandboxRow)))
  }
  await terminal.print(summaryOf(report))
  if (!report.persisted) terminal.note('The store could not take it yet: until then it is in a file of the server.')
}

async function printList(context: Context, reports: readonly KillReport[], options: JsonOption): Promise<void> {
  const { terminal } = context
  if (options.json === true) return terminal.printJson(reports)
  const head = ['KILL', 'SCOPE', 'TARGET', 'SINCE', 'BY', 'ENDED', 'UNVERIFIED', 'REASON']
  await terminal.print(renderTable(terminal, head, reports.map(killRow)))
}

function killRow(report: KillReport): Row {
  const { id, scope, at, actor, sandboxes, unverified, reason } = report
  return [
    id,
    scope,
    targetText(report),
    at,
    actor,
    String(sandboxes.length - unverified.length),
    countCell(unverified.length),
    reason === '' ? '-' : reason,
  ]
}

function sandboxRow(one: KillReport['sandboxes'][number]): Row {
  return [
    one.id,
    one.node,
    one.processes === null ? '-' : String(one.processes),
    milliseconds(one.frozenMs),
    milliseconds(one.goneMs),
    one.verified ? { text: 'yes', style: 'green' } : { text: 'no', style: 'red' },
  ]
}

function summaryOf(report: KillReport): string {
  const { sandboxes, unverified, slowestMs, nodesDue, liftedAt } = report
  if (liftedAt !== null) return `Lifted: ${report.scope} ${targetText(report)}.`
  const slowest = slowestMs === null ? '' : `, the slowest after ${slowestMs} ms`
  const ended = `${sandboxes.length - unverified.length} of ${sandboxes.length} seen gone${slowest}.`
  const left = unverified.length === 0 ? '' : ` May still live, and is tried again: ${unverified.join(', ')}.`
  const due = nodesDue.length === 0 ? '' : ` Other nodes have yet to end theirs: ${nodesDue.join(', ')}.`
  return `Killed ${report.scope} ${targetText(report)}: ${ended}${left}${due}`
}

function targetText({ target }: Pick<KillReport, 'target'>): string {
  return target ?? '(everything)'
}

function nameOf({ scope, target = '' }: KillTarget): string {
  return scope === 'all' ? 'everything on this server' : `the ${scope} ${target}`
}

function milliseconds(ms: number | null): string {
  return ms === null ? '-' : `${ms} ms`
}

function countCell(count: number): string | Cell {
  return count === 0 ? '0' : { text: String(count), style: 'red' }
}
