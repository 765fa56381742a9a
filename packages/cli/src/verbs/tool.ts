import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { Airlock, AirlockError, type PolicyDocumentInput, type Tool, type ToolInput } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { renderTable, type Row } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

/** The policy that `allow` and `deny` write. Others may have rules about tools too: of all of them the strictest holds. */
const POLICY = 'tools'

export function defineTool(tool: Command, context: Context): void {
  addLs(tool, context)
  addGet(tool, context)
  addPut(tool, context)
  addRm(tool, context)
  addRule(tool, context, { verb: 'allow', about: 'Let sandboxes with the broker door call a tool.' })
  addRule(tool, context, { verb: 'deny', about: 'Take a tool away, and cut its calls.' })
}

function addLs(tool: Command, context: Context): void {
  withJson(tool.command('ls').description('List tools.')).action(async (options: JsonOption) => {
    const { terminal } = context
    const found = await new Airlock({ role: 'admin' }).tools.list()
    if (options.json === true) return terminal.printJson(found)
    await terminal.print(renderTable(terminal, ['NAME', 'METHOD', 'SERVICE', 'SECRET', 'VERSION'], found.map(rowOf)))
  })
}

function rowOf({ name, method, origin, path, credential, version }: Tool): Row {
  return [name, method, `${origin}${path}`, credential?.secret ?? '-', `${version}`]
}

function addGet(tool: Command, context: Context): void {
  withJson(tool.command('get').description('Print the description of a tool, as it can be put again.'))
    .argument('<name>', 'the tool')
    .action(async (name: string, options: JsonOption) => {
      const found = await new Airlock({ role: 'admin' }).tools.get(name)
      if (options.json === true) return context.terminal.printJson(found)
      await context.terminal.printJson(inputOf(found), 'page')
    })
}

function inputOf(tool: Tool): ToolInput {
  const {
    name: _name,
    tenant: _tenant,
    version: _version,
    createdAt: _at,
    updatedAt: _then,
    updatedBy: _by,
    ...input
  } = tool
  return input
}

function addPut(tool: Command, context: Context): void {
  withJson(tool.command('put').description('Describe a tool. No sandbox may call it until a rule names it.'))
    .argument('<name>', 'what programs call it')
    .argument('<file>', 'its description as JSON; - reads stdin')
    .action(async (name: string, file: string, options: JsonOption) => {
      const { terminal } = context
      const put = await new Airlock({ role: 'admin' }).tools.put(name, await readInput(file))
      if (options.json === true) return terminal.printJson(put)
      await terminal.print(put.name)
      if (put.version === 1) terminal.note(`To let sandboxes call it: airlock tool allow ${put.name}`)
    })
}

async function readInput(file: string): Promise<ToolInput> {
  const given = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8')
  try {
    return JSON.parse(given) as ToolInput
  } catch (cause) {
    throw new AirlockError('invalid_request', `${file} is not JSON.`, { cause })
  }
}

function addRm(tool: Command, context: Context): void {
  withJson(tool.command('rm').description('Remove a tool.'))
    .argument('<name>', 'the tool')
    .action(async (name: string, options: JsonOption) => {
      await new Airlock({ role: 'admin' }).tools.remove(name)
      await (options.json === true ? context.terminal.printJson({ name }) : context.terminal.print(name))
    })
}

interface Verb {
  readonly verb: 'allow' | 'deny'
  readonly about: string
}

interface RuleOptions extends JsonOption {
  readonly agent?: string
}

function addRule(tool: Command, context: Context, { verb, about }: Verb): void {
  withJson(tool.command(verb).description(about))
    .argument('<name>', 'the tool')
    .option('--agent <agent>', 'only for sandboxes of this agent')
    .action(async (name: string, { json, agent }: RuleOptions) => {
      const { terminal } = context
      const airlock = new Airlock({ role: 'admin' })
      // A tool that is not there is a typo.
      if (verb === 'allow') await airlock.tools.get(name)
      const found = await airlock.policies.get(POLICY).catch((error: unknown) => {
        if (error instanceof AirlockError && error.code === 'policy_not_found') return undefined
        throw error
      })
      const before = found?.document ?? { name: POLICY, rules: [] }
      const document = withRule(before, { effect: verb, name, agent })
      const policy = await airlock.policies.put(document, { expectedVersion: found?.version ?? 0 })
      if (json === true) return terminal.printJson(policy)
      await terminal.print(`${POLICY}@${policy.version}`)
      const whom = agent === undefined ? 'sandboxes' : `sandboxes of ${agent}`
      terminal.note(`${whom} with the broker door may ${verb === 'allow' ? '' : 'not '}call ${name}`)
    })
}

interface Given {
  readonly effect: 'allow' | 'deny'
  readonly name: string
  readonly agent: string | undefined
}

/** Takes the place of the rule for the same tool and agent. */
function withRule(document: PolicyDocumentInput, { effect, name, agent }: Given): PolicyDocumentInput {
  const digest = createHash('sha256')
    .update(JSON.stringify([name, agent]))
    .digest('hex')
    .slice(0, 8)
  const slug = name.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')
  const id = `${slug.slice(0, 30) || 'tool'}-${digest}`
  const rule = {
    id,
    kind: 'tool' as const,
    effect,
    risk: 'low' as const,
    reason: `airlock tool ${effect}`,
    match: { tools: [name] },
    ...(agent === undefined ? {} : { when: { agents: [agent] } }),
  }
  return { ...document, rules: [...document.rules.filter((other) => other.id !== id), rule] }
}
