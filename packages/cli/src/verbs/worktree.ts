import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import { writeFile } from 'node:fs/promises'
import type { Context } from '../context.ts'
import { waitApprovalOption, waitingAirlock } from '../options/command-options.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { listPages } from '../list-pages.ts'
import { renderTable } from '../text/table.ts'
import { renderDiff, renderPatch } from '../text/worktree-text.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineWorktree(worktree: Command, context: Context): void {
  addLs(worktree, context)
  addDiff(worktree, context)
  addExport(worktree, context)
}

function addLs(worktree: Command, context: Context): void {
  withJson(worktree.command('ls').description('List living sandboxes that have a worktree.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const airlock = new Airlock()
      const page = async (cursor: string | undefined) =>
        airlock.sandboxes.list({ limit: 200, ...(cursor === undefined ? {} : { cursor }) })
      const found = (await listPages(page)).filter((sandbox) => worktreeOf(sandbox))
      if (options.json === true) return terminal.printJson(found.map(({ data }) => data))
      const rows = found.map((sandbox) => {
        const { path = '', commit = '' } = worktreeOf(sandbox) ?? {}
        return [sandbox.id, sandbox.name ?? '-', sandbox.data.state, path, commit.slice(0, 12)]
      })
      await terminal.print(renderTable(terminal, ['ID', 'NAME', 'STATE', 'SOURCE', 'BASE'], rows))
    },
  )
}

interface DiffOptions extends JsonOption {
  readonly patch?: boolean
  readonly waitApproval?: number
}

function addDiff(worktree: Command, context: Context): void {
  withJson(worktree.command('diff').description('Show what a sandbox changed, and what the gate finds in it.'))
    .argument('<sandbox>', 'its id or name')
    .option('--patch', 'also every line, as a patch; the gate decides about that')
    .addOption(waitApprovalOption())
    .action(async (target: string, options: DiffOptions) => {
      const { terminal } = context
      const sandbox = await findSandbox(waitingAirlock(options), target)
      const diff = await sandbox.worktree.diff()
      if (options.json === true) return terminal.printJson(diff)
      await terminal.print(renderDiff(terminal, diff))
      if (options.patch === true && diff.changes.length > 0)
        await terminal.print(renderPatch(terminal, await sandbox.worktree.patch(diff.seal)))
      terminal.note(`seal ${diff.seal}`)
    })
}

interface ExportOptions extends JsonOption {
  readonly branch?: string
  readonly patch?: string
  readonly seal?: string
  readonly message?: string
  readonly waitApproval?: number
}

function addExport(worktree: Command, context: Context): void {
  withJson(worktree.command('export').description('Take what a sandbox changed out of it: as a branch, or as a patch.'))
    .argument('<sandbox>', 'its id or name')
    .option('--branch <name>', 'becomes sandbox/<name> in the repository (default: the name of the sandbox)')
    .option('--patch <file>', 'write a patch to a file of this machine instead')
    .option('--seal <hash>', 'exactly the work of that diff, as "airlock worktree diff" named it')
    .option('--message <text>', 'of the one commit that is made')
    .addOption(waitApprovalOption())
    .action(async (target: string, options: ExportOptions) => {
      if (options.patch !== undefined && (options.branch !== undefined || options.message !== undefined))
        throw new UsageError('A patch has neither a branch nor a message.', 'Give --patch FILE, or --branch NAME.')
      const sandbox = await findSandbox(waitingAirlock(options), target)
      if (options.patch === undefined) await exportBranch(context, sandbox, options)
      else await exportPatch(context, sandbox, { ...options, patch: options.patch })
    })
}

async function exportBranch({ terminal }: Context, sandbox: Sandbox, options: ExportOptions): Promise<void> {
  const { branch, seal, message } = options
  const asked = { branch, seal, message }
  const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined))
  const made = await sandbox.worktree.export(given)
  if (options.json === true) return terminal.printJson(made)
  if (!made.exported) return terminal.note('Nothing was changed, so nothing was exported.')
  await terminal.print(made.branch)
  terminal.note(`See it: git -C ${worktreeOf(sandbox)?.path ?? '.'} log -p ${made.base.slice(0, 12)}..${made.branch}`)
}

async function exportPatch(
  { terminal }: Context,
  sandbox: Sandbox,
  options: ExportOptions & { readonly patch: string },
): Promise<void> {
  const { worktree } = sandbox
  const seal = options.seal ?? (await worktree.diff()).seal
  const patch = await worktree.patch(seal)
  if (patch.length > 0) await writeFile(options.patch, patch)
  if (options.json === true) return terminal.printJson({ exported: patch.length > 0, seal, bytes: patch.length })
  if (patch.length === 0) return terminal.note('Nothing was changed, so nothing was exported.')
  await terminal.print(options.patch)
}

/** What a sandbox has of a repository, if it has one. */
export function worktreeOf({ data }: Sandbox): Sandbox['data']['mounts'][number] | undefined {
  return data.mounts.find(({ mode }) => mode === 'worktree')
}
