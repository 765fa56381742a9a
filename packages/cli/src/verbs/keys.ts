import { Airlock, type ApiKey, type NewApiKey } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import type { Context } from '../context.ts'
import { listPages } from '../list-pages.ts'
import { collectWords } from '../text/pairs.ts'
import { renderTable, type Cell, type Row } from '../text/table.ts'
import { formatDuration, parseDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

const ROLES = ['admin', 'operator', 'developer', 'auditor'] as const

export function defineKeys(keys: Command, context: Context): void {
  addCreate(keys, context)
  addLs(keys, context)
  addRotate(keys, context)
  addRevoke(keys, context)
}

interface CreateOptions extends JsonOption {
  readonly role: (typeof ROLES)[number]
  readonly tenant?: string
  readonly agent?: readonly string[]
  readonly platform?: boolean
  readonly expires?: number
  readonly person?: string
}

function addCreate(keys: Command, context: Context): void {
  withJson(keys.command('create').description('Make a key and print it. It is shown this once.'))
    .argument('<name>', 'what to call it')
    .addOption(new Option('--role <role>', 'what it may do').choices(ROLES).default('developer'))
    .option('--tenant <tenant>', 'of another tenant; needs a key of the platform')
    .option('--agent <agent>', 'it may act for this agent only; may be given several times', collectWords)
    .option('--platform', 'it may also do what concerns the whole server')
    .option('--person <person>', 'who holds it, like ann@example.com: no key of theirs answers what it asks for')
    .option('--expires <duration>', 'how long it is good, like 30d', parseDuration)
    .action(async (name: string, options: CreateOptions) => {
      const { role, tenant, agent: agents, platform, person, expires: expiresInMs } = options
      const asked = { name, role, tenant, agents, platform, person, expiresInMs }
      await printNew(context, await new Airlock({ role: 'admin' }).keys.create(asked), options)
    })
}

interface LsOptions extends JsonOption {
  readonly tenant?: string
  readonly all?: boolean
}

function addLs(keys: Command, context: Context): void {
  withJson(keys.command('ls').description('List keys, newest first.'))
    .option('-a, --all', 'also those that are revoked or have expired')
    .option('--tenant <tenant>', 'of another tenant; needs a key of the platform')
    .action(async (options: LsOptions) => {
      const { terminal } = context
      const { tenant, all } = options
      const api = new Airlock({ role: 'admin' }).keys
      const found = await listPages((cursor) => api.list({ tenant, all, cursor }))
      if (options.json === true) return terminal.printJson(found)
      const head = ['ID', 'NAME', 'ROLE', 'AGENTS', 'PERSON', 'STATE', 'LAST USED', 'CREATED BY']
      await terminal.print(renderTable(terminal, head, found.map(keyRow)))
    })
}

function addRotate(keys: Command, context: Context): void {
  withJson(keys.command('rotate').description('Make a key that takes over from another, and print it.'))
    .argument('<id>', 'the key that ends')
    .option('--overlap <duration>', 'how long both are good (default: 1d)', parseDuration)
    .option('--expires <duration>', 'how long the new one is good', parseDuration)
    .action(async (id: string, options: JsonOption & { readonly overlap?: number; readonly expires?: number }) => {
      const { overlap: overlapMs, expires: expiresInMs } = options
      await printNew(context, await new Airlock({ role: 'admin' }).keys.rotate(id, { overlapMs, expiresInMs }), options)
    })
}

function addRevoke(keys: Command, context: Context): void {
  withJson(keys.command('revoke').description('End a key at once.'))
    .argument('<id>', 'the key')
    .action(async (id: string, options: JsonOption) => {
      const revoked = await new Airlock({ role: 'admin' }).keys.revoke(id)
      if (options.json === true) return context.terminal.printJson(revoked)
      await context.terminal.print(revoked.id)
    })
}

/** The secret alone goes to stdout, so that it can be put somewhere without being seen. */
async function printNew({ terminal }: Context, made: NewApiKey, options: JsonOption): Promise<void> {
  if (options.json === true) return terminal.printJson(made)
  await terminal.print(made.secret)
  const { id, role, tenant, expiresAt } = made.key
  const end = expiresAt === null ? '' : `, until ${expiresAt}`
  terminal.note(`Key ${id}: ${role} of ${tenant}${end}. It is not shown again.`)
}

function keyRow(key: ApiKey): Row {
  return [
    key.id,
    key.name,
    key.platform ? `${key.role}, platform` : key.role,
    key.agents?.join(' ') ?? 'all',
    key.person ?? '-',
    stateOf(key),
    key.lastUsedAt === null ? 'never' : `${formatDuration(Date.now() - Date.parse(key.lastUsedAt))} ago`,
    key.createdBy,
  ]
}

function stateOf(key: ApiKey): Cell {
  if (key.revokedAt !== null) return { text: 'revoked', style: 'dim' }
  if (key.expiresAt === null) return { text: 'good', style: 'green' }
  const leftMs = Date.parse(key.expiresAt) - Date.now()
  if (leftMs <= 0) return { text: 'expired', style: 'dim' }
  return { text: `good for ${formatDuration(leftMs)}`, style: 'yellow' }
}
