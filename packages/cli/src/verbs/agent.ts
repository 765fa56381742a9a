import { type Agent, type Agents, Airlock } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import type { Context } from '../context.ts'
import { listPages } from '../list-pages.ts'
import { collectPairs } from '../text/pairs.ts'
import { renderFacts, renderTable, type Cell, type Row } from '../text/table.ts'
import { formatDuration, parseNumber } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'
import { addAgentSummary } from './agent-summary.ts'

const STATES = ['unknown', 'connected', 'idle', 'suspended'] as const

export function defineAgent(agent: Command, context: Context): void {
  addRegister(agent, context)
  addUpdate(agent, context)
  addLs(agent, context)
  addInspect(agent, context)
  addAgentSummary(agent, context)
  addChange(agent, context, { verb: 'approve', about: 'Let an agent have sandboxes.' })
  addChange(agent, context, { verb: 'revoke', about: 'Take the approval of an agent back and end its sandboxes.' })
  addChange(agent, context, { verb: 'suspend', about: 'Stop an agent until it is resumed, and end its sandboxes.' })
  addChange(agent, context, { verb: 'resume', about: 'Let a suspended agent go on.' })
  addChange(agent, context, { verb: 'rm', about: 'Delete an agent and end its sandboxes.' })
}

interface RegisterOptions extends JsonOption {
  readonly version?: string
  readonly label?: Readonly<Record<string, string>>
  readonly meta?: Readonly<Record<string, string>>
  readonly approve?: boolean
}

/** With the developer key: an agent is approved by somebody else, unless that is asked for too. */
function addRegister(agent: Command, context: Context): void {
  withJson(agent.command('register').description('Register an agent, to be approved by an admin.'))
    .argument('<id>', 'its name')
    .option('--version <version>', 'which version of it this is')
    .option('--label <key=value>', 'may be given several times', collectPairs)
    .option('--meta <key=value>', 'whatever else is worth knowing; may be given several times', collectPairs)
    .option('--approve', 'approve it at once, with the admin key')
    .action(async (id: string, options: RegisterOptions) => {
      const { version, label: labels, meta: metadata, approve } = options
      const airlock = new Airlock({ role: approve === true ? 'admin' : 'developer' })
      const asked = { version, labels, metadata, approve }
      const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined))
      const made = await airlock.agents.register(id, given)
      if (options.json === true) return context.terminal.printJson(made)
      await context.terminal.print(made.id)
      if (!made.approved) context.terminal.note(`It has no sandboxes until: airlock agent approve ${made.id}`)
    })
}

/** An agent keeps its approval, unless the server wants to see its versions. */
function addUpdate(agent: Command, context: Context): void {
  withJson(agent.command('update').description('Change the version, labels or metadata of an agent.'))
    .argument('<id>', 'its name')
    .option('--version <version>', 'which version of it this is')
    .option('--label <key=value>', 'in place of all that it had; may be given several times', collectPairs)
    .option('--meta <key=value>', 'in place of all that it had; may be given several times', collectPairs)
    .action(async (id: string, options: Omit<RegisterOptions, 'approve'>) => {
      const { version, label: labels, meta: metadata } = options
      const asked = Object.entries({ version, labels, metadata }).filter(([, value]) => value !== undefined)
      const updated = await new Airlock().agents.update(id, Object.fromEntries(asked))
      if (options.json === true) return context.terminal.printJson(updated)
      await context.terminal.print(updated.id)
      if (!updated.approved) context.terminal.note(`It has no sandboxes until: airlock agent approve ${updated.id}`)
    })
}

interface LsOptions extends JsonOption {
  readonly state?: (typeof STATES)[number]
  readonly label?: Readonly<Record<string, string>>
  readonly pending?: boolean
}

function addLs(agent: Command, context: Context): void {
  withJson(agent.command('ls').description('List agents, by name.'))
    .addOption(new Option('--state <state>', 'only those in this state').choices(STATES))
    .option('--label <key=value>', 'only those with this label; may be given several times', collectPairs)
    .option('--pending', 'only those that are not approved')
    .action(async (options: LsOptions) => {
      const { terminal } = context
      const { state, label: labels, pending } = options
      const { agents } = new Airlock()
      const filter = { state, labels, ...(pending === true ? { approved: false } : {}) }
      const found = await listPages((cursor) => agents.list({ ...filter, cursor }))
      if (options.json === true) return terminal.printJson(found)
      const head = ['AGENT', 'STATE', 'APPROVED', 'GENERATION', 'VERSION', 'LAST SEEN', 'LABELS']
      await terminal.print(renderTable(terminal, head, found.map(agentRow)))
    })
}

function addInspect(agent: Command, context: Context): void {
  withJson(agent.command('inspect').description('Show everything about an agent.'))
    .argument('<id>', 'its name')
    .action(async (id: string, options: JsonOption) => {
      const { terminal } = context
      const found = await new Airlock().agents.get(id)
      if (options.json === true) return terminal.printJson(found)
      await terminal.print(renderFacts(terminal, factsOf(found)))
    })
}

type Verb = 'approve' | 'revoke' | 'suspend' | 'resume' | 'rm'

function addChange(agent: Command, context: Context, what: { readonly verb: Verb; readonly about: string }): void {
  withJson(agent.command(what.verb).description(what.about))
    .argument('<id>', 'its name')
    .option('--generation <number>', 'only if this is its generation', parseNumber)
    .action(async (id: string, options: JsonOption & { readonly generation?: number }) => {
      const { agents } = new Airlock({ role: 'admin' })
      const changed = await change(agents, what.verb, { id, expectedGeneration: options.generation })
      if (options.json === true) return context.terminal.printJson(changed ?? null)
      await context.terminal.print(id)
    })
}

async function change(
  agents: Agents,
  verb: Verb,
  of: { readonly id: string; readonly expectedGeneration: number | undefined },
): Promise<Agent | void> {
  const { id, ...options } = of
  return verb === 'rm' ? agents.remove(id, options) : agents[verb](id, options)
}

function agentRow(agent: Agent): Row {
  return [
    agent.id,
    stateCell(agent),
    agent.approved ? 'yes' : { text: 'no', style: 'yellow' },
    String(agent.generation),
    agent.version ?? '-',
    lastSeen(agent),
    pairs(agent.labels),
  ]
}

function factsOf(agent: Agent): readonly (readonly [string, string | Cell])[] {
  return [
    ['agent', `${agent.id} of ${agent.tenant}`],
    ['state', stateCell(agent)],
    ['approved', agent.approved ? 'yes' : { text: 'no', style: 'yellow' }],
    ['generation', String(agent.generation)],
    ['version', agent.version ?? '-'],
    ['labels', pairs(agent.labels)],
    ['metadata', Object.keys(agent.metadata).length === 0 ? '-' : JSON.stringify(agent.metadata)],
    ['owner', agent.owner],
    ['registered', agent.createdAt],
    ['changed', agent.updatedAt],
    ['last seen', lastSeen(agent)],
  ]
}

function stateCell({ state }: Agent): Cell {
  if (state === 'suspended') return { text: state, style: 'red' }
  return { text: state, style: state === 'connected' ? 'green' : 'dim' }
}

function lastSeen({ lastSeenAt }: Agent): string {
  return lastSeenAt === null ? 'never' : `${formatDuration(Date.now() - Date.parse(lastSeenAt))} ago`
}

function pairs(labels: Agent['labels']): string {
  return (
    Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',') || '-'
  )
}
