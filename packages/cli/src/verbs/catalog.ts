import { DEFAULTS } from '@airlock/contract/defaults'
import { Airlock, type Graph, type GraphInput } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { readCodeFile } from '../run/read-code.ts'
import { runtimeOf } from '../run/run-file.ts'
import { collectWords } from '../text/pairs.ts'
import { renderFacts, renderTable, type Row } from '../text/table.ts'
import { durationWithin, formatDuration, numberWithin } from '../text/units.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineCatalog(catalog: Command, context: Context): void {
  addLs(catalog, context)
  addInspect(catalog, context)
  addPut(catalog, context)
  addRm(catalog, context)
}

function addLs(catalog: Command, context: Context): void {
  withJson(catalog.command('ls', { isDefault: true }).description('List the agent programs that you may ask.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const graphs = await new Airlock().catalog.list()
      if (options.json === true) return terminal.printJson(graphs)
      await terminal.print(
        renderTable(terminal, ['PROGRAM', 'VERSION', 'FROM', 'TEMPLATE', 'MODELS', 'DESCRIPTION'], graphs.map(rowOf)),
      )
    },
  )
}

function rowOf({ name, version, source, template, models, description }: Graph): Row {
  return [name, version, source, template, models.join(' ') || 'all', description]
}

function addInspect(catalog: Command, context: Context): void {
  withJson(catalog.command('inspect').description('Look at one agent program.'))
    .argument('<program>', 'its name, such as sandbox:agent')
    .action(async (name: string, options: JsonOption) => {
      const { terminal } = context
      const graph = await new Airlock().catalog.get(name)
      if (options.json === true) return terminal.printJson(graph)
      const { description, version, source, template, argv, sha256, models, doors, timeoutMs } = graph
      await terminal.print(
        renderFacts(terminal, [
          ['program', name],
          ['description', description || '-'],
          ['version', version],
          ['from', source],
          ['template', template],
          ['command', argv.join(' ')],
          ['sha256', sha256],
          ['models', models.join(' ') || 'all'],
          ['caps of a run', JSON.stringify(graph.modelLimits)],
          ['limits', JSON.stringify(graph.limits)],
          ['doors', doors.join(' ') || '-'],
          ['timeout', formatDuration(timeoutMs)],
        ]),
      )
    })
}

interface PutOptions extends JsonOption {
  readonly description?: string
  readonly programVersion?: string
  readonly template?: string
  readonly model?: string[]
  readonly door?: string[]
  readonly dollars?: number
  readonly calls?: number
  readonly tokens?: number
  readonly timeout?: number
}

function addPut(catalog: Command, context: Context): void {
  withJson(catalog.command('put').description('Put an agent program into the catalog; uses the admin key.'))
    .usage('[options] <name> <file or program> [arguments...]')
    .argument('<name>', 'sandbox:<name>')
    .argument('<command...>', 'a file .py, .mjs or .sh of this machine, or a program of the template; and arguments')
    .passThroughOptions()
    .option('--description <text>', 'what the catalog says of it')
    .option('--program-version <text>', 'yours; each run says with which it began')
    .option('--template <template>', 'what its sandboxes start from (default: base)')
    .option('--model <name>', 'a model that it may use, the default first; may be given several times', collectWords)
    .option('--door <name>', 'a door beside that of models, such as egress', collectWords)
    .option('--dollars <amount>', 'what the model calls of a run may cost', numberWithin(DEFAULTS.sandboxModelDollars))
    .option('--calls <count>', 'model calls of a run at most', numberWithin(DEFAULTS.sandboxModelCalls))
    .option('--tokens <count>', 'tokens of a run at most', numberWithin(DEFAULTS.sandboxModelTokens))
    .option('--timeout <duration>', 'of one run', durationWithin(DEFAULTS.runTimeoutMs))
    .action(async (name: string, words: readonly string[], options: PutOptions) => {
      const { terminal } = context
      const body: GraphInput = { ...(await programOf(words)), ...specOf(options) }
      const graph = await new Airlock({ role: 'admin' }).catalog.put(name, body)
      await (options.json === true ? terminal.printJson(graph) : terminal.print(graph.name))
    })
}

/** A file of this machine is put into the catalog as code; all else is a program of the template. */
async function programOf(words: readonly string[]): Promise<Pick<GraphInput, 'argv' | 'code' | 'language'>> {
  const [path = '', ...args] = words
  const language = runtimeOf(path)
  if (language === undefined) return { argv: [...words] }
  if (args.length > 0)
    throw new UsageError(
      'Code of an agent program has no arguments.',
      'Read them from messages.json, or build a template that has the program.',
    )
  return { code: await readCodeFile(path), language }
}

function specOf(options: PutOptions): Partial<GraphInput> {
  const { description, programVersion: version, template, model: models, timeout: timeoutMs } = options
  const { dollars, calls, tokens } = options
  const given = { description, version, template, models, timeoutMs, doors: options.door }
  return { ...present(given), modelLimits: present({ dollars, calls, tokens }) }
}

function present(of: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined))
}

function addRm(catalog: Command, context: Context): void {
  catalog
    .command('rm')
    .description('Take agent programs out of the catalog; uses the admin key. Their runs go on.')
    .argument('<program...>', 'their names')
    .action(async (names: readonly string[]) => {
      const airlock = new Airlock({ role: 'admin' })
      for (const name of names) {
        await airlock.catalog.remove(name)
        await context.terminal.print(name)
      }
    })
}
