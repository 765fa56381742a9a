import { Airlock, type Grant } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import { resolve } from 'node:path'
import type { Context } from '../context.ts'
import { collectWords } from '../text/pairs.ts'
import { renderTable, type Row } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

const KINDS = ['file', 'dir'] as const
const TENANT = ['--tenant <tenant>', 'the tenant of the agent; another than yours needs a key of the platform'] as const

export function defineGrant(grant: Command, context: Context): void {
  addAdd(grant, context)
  addLs(grant, context)
  addRm(grant, context)
}

interface AddOptions extends JsonOption {
  readonly rw?: boolean
  readonly worktree?: boolean
  readonly kind?: (typeof KINDS)[number]
  readonly target?: string
  readonly allow?: readonly string[]
  readonly block?: readonly string[]
  readonly tenant?: string
}

function addAdd(grant: Command, context: Context): void {
  withJson(grant.command('add').description('Let the sandboxes of an agent see a path of the host, read-only.'))
    .argument('<agent>', 'its name')
    .argument('<path>', 'on the host of the server, without any link in it')
    .addOption(new Option('--rw', 'let them write it too').conflicts('worktree'))
    .option('--worktree', 'mount nothing: let them get copies of its commits, for the git repository at that path')
    .addOption(new Option('--kind <kind>', 'what has to be there').choices(KINDS))
    .option('--target <path>', 'where it appears inside (default: /grants/<its name>)')
    .option('--allow <pattern>', 'only what matches is there; may be given several times', collectWords)
    .option('--block <pattern>', 'what matches is not there; may be given several times', collectWords)
    .option(...TENANT)
    .action(async (agent: string, path: string, options: AddOptions) => {
      const { rw, worktree, kind, target, allow: allowed, block: blocked, tenant } = options
      const mode = worktree === true ? 'worktree' : rw === true ? 'rw' : 'ro'
      const asked = { mode, kind, target, allowed, blocked, tenant } as const
      const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined))
      const made = await new Airlock({ role: 'admin' }).grants.add(agent, resolve(path), given)
      if (options.json === true) return context.terminal.printJson(made)
      await context.terminal.print(made.id)
      if (made.mode === 'worktree')
        return context.terminal.note(`For a copy of it: airlock create --agent ${made.agent} --worktree ${made.path}`)
      context.terminal.note(`${made.path} will be at ${made.target} in the next sandbox of ${made.agent}.`)
    })
}

function addLs(grant: Command, context: Context): void {
  withJson(grant.command('ls').description('List what an agent was granted, oldest first.'))
    .argument('<agent>', 'its name')
    .option(...TENANT)
    .action(async (agent: string, options: JsonOption & { readonly tenant?: string }) => {
      const { terminal } = context
      const found = await new Airlock({ role: 'admin' }).grants.list(agent, { tenant: options.tenant })
      if (options.json === true) return terminal.printJson(found)
      const head = ['ID', 'MODE', 'KIND', 'PATH', 'TARGET', 'ALLOWED', 'BLOCKED', 'GRANTED BY']
      await terminal.print(renderTable(terminal, head, found.map(grantRow)))
    })
}

function addRm(grant: Command, context: Context): void {
  withJson(grant.command('rm').description('Take a grant back and end the sandboxes that hold it.'))
    .argument('<agent>', 'its name')
    .argument('<grant>', 'the id of the grant')
    .option(...TENANT)
    .action(async (agent: string, id: string, options: JsonOption & { readonly tenant?: string }) => {
      await new Airlock({ role: 'admin' }).grants.remove(agent, id, { tenant: options.tenant })
      if (options.json === true) return context.terminal.printJson(null)
      await context.terminal.print(id)
    })
}

function grantRow(grant: Grant): Row {
  return [
    grant.id,
    grant.mode === 'rw' ? { text: 'rw', style: 'yellow' } : 'ro',
    grant.kind,
    grant.path,
    grant.target,
    grant.allowed.join(' ') || '-',
    grant.blocked.join(' ') || '-',
    grant.createdBy,
  ]
}
