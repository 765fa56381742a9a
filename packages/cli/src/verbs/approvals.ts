import { Airlock, type Approval, type ApprovalDetail, type ApprovalScope, type ApprovalState } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import { approvalFacts, operationText, riskCell, stateCell } from '../text/approval-text.ts'
import type { Context } from '../context.ts'
import { listPages } from '../list-pages.ts'
import { renderFacts, renderTable, type Row } from '../text/table.ts'
import { formatDuration, parseDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'
import { watchApprovals } from '../run/watch-approvals.ts'

const STATES = ['pending', 'approved', 'rejected', 'expired', 'revoked', 'used', 'all'] as const
const SCOPES = ['once', 'sandbox', 'agent', 'until'] as const

export function defineApprovals(approvals: Command, context: Context): void {
  addLs(approvals, context)
  addShow(approvals, context)
  addWatch(approvals, context)
  addApprove(approvals, context)
  addReject(approvals, context)
  addRevoke(approvals, context)
}

interface LsOptions extends JsonOption {
  readonly state: ApprovalState | 'all'
  readonly agent?: string
}

function addLs(approvals: Command, context: Context): void {
  withJson(approvals.command('ls').description('List asks, newest first.'))
    .addOption(new Option('--state <state>', 'those in this state').choices(STATES).default('pending'))
    .option('--agent <agent>', 'those of this agent')
    .action(async ({ state, agent, json }: LsOptions) => {
      const { terminal } = context
      const api = new Airlock({ role: 'admin' }).approvals
      const found = await listPages((cursor) => api.list({ state, agent, cursor }))
      if (json === true) return terminal.printJson(found)
      const head = ['ID', 'RISK', 'STATE', 'AGENT', 'ASKED BY', 'TIME LEFT', 'WHAT']
      await terminal.print(renderTable(terminal, head, found.map(rowOf)))
    })
}

function addShow(approvals: Command, context: Context): void {
  withJson(approvals.command('show').description('Show one ask, with all that was asked for.'))
    .argument('<id>', 'the ask')
    .action(async (id: string, options: JsonOption) => {
      const found = await new Airlock({ role: 'admin' }).approvals.get(id)
      if (options.json === true) return context.terminal.printJson(found)
      await printDetail(context, found)
    })
}

function addWatch(approvals: Command, context: Context): void {
  withJson(approvals.command('watch').description('Show asks as they come; at a terminal, answer them by a key.'))
    .option('--agent <agent>', 'those of this agent')
    .action(async (options: JsonOption & { readonly agent?: string }) => {
      context.exitCode = await watchApprovals(context, { agent: options.agent, json: options.json === true })
    })
}

interface ApproveOptions extends JsonOption {
  readonly scope: ApprovalScope
  readonly for?: number
  readonly note?: string
}

function addApprove(approvals: Command, context: Context): void {
  withJson(approvals.command('approve').description('Let what was asked for happen.'))
    .argument('<id>', 'the ask')
    .addOption(new Option('--scope <scope>', 'once, or again and again').choices(SCOPES).default('once'))
    .option('--for <duration>', 'how long it may be used again and again, like 2h', parseDuration)
    .option('--note <text>', 'why')
    .action(async (id: string, options: ApproveOptions) => {
      const { scope, note } = options
      const until = options.for === undefined ? undefined : new Date(Date.now() + options.for).toISOString()
      const answered = await new Airlock({ role: 'admin' }).approvals.approve(id, { scope, until, note })
      await printAnswer(context, answered, options)
    })
}

function addReject(approvals: Command, context: Context): void {
  withJson(approvals.command('reject').description('Say no.'))
    .argument('<id>', 'the ask')
    .option('--note <text>', 'why; the requester is told')
    .action(async (id: string, options: JsonOption & { readonly note?: string }) => {
      const { note } = options
      await printAnswer(context, await new Airlock({ role: 'admin' }).approvals.reject(id, { note }), options)
    })
}

function addRevoke(approvals: Command, context: Context): void {
  withJson(approvals.command('revoke').description('Take an approval back.'))
    .argument('<id>', 'the approval')
    .action(async (id: string, options: JsonOption) => {
      await printAnswer(context, await new Airlock({ role: 'admin' }).approvals.revoke(id), options)
    })
}

async function printAnswer({ terminal }: Context, answered: Approval, options: JsonOption): Promise<void> {
  if (options.json === true) return terminal.printJson(answered)
  await terminal.print(`${answered.id} ${answered.state}`)
}

async function printDetail({ terminal }: Context, found: ApprovalDetail): Promise<void> {
  await terminal.print(renderFacts(terminal, approvalFacts(found)))
  await terminal.print(`\n${operationText(found.question.operation)}`)
}

function rowOf(approval: Approval): Row {
  const leftMs = Date.parse(approval.expiresAt) - Date.now()
  const isOpen = approval.state === 'pending' || approval.state === 'approved'
  return [
    approval.id,
    riskCell(approval),
    stateCell(approval),
    approval.agent ?? '-',
    approval.requester,
    isOpen ? formatDuration(leftMs) : '-',
    approval.summary,
  ]
}
