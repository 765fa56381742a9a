import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { Airlock, AirlockError, type Backtest, type PolicyDocumentInput, type PolicyVersion } from '@airlock/sdk'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { parseMoment } from '../text/moment.ts'
import { renderTable, type Cell, type Row } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'
import { effectCell } from './guardian.ts'

export function definePolicy(policy: Command, context: Context): void {
  addLs(policy, context)
  addGet(policy, context)
  addPut(policy, context)
  addRm(policy, context)
  addCheck(policy, context)
  addBacktest(policy, context)
}

interface Scoped extends JsonOption {
  readonly platform?: boolean
}

function scoped(command: Command): Command {
  return withJson(command).option('--platform', 'of the whole server; needs a key of the platform')
}

function scopeOf({ platform }: Scoped): { readonly scope?: 'platform' } {
  return platform === true ? { scope: 'platform' } : {}
}

function addLs(policy: Command, context: Context): void {
  scoped(policy.command('ls').description('List policies, or the versions of one.'))
    .argument('[name]', 'the policy whose versions are listed')
    .action(async (name: string | undefined, options: Scoped) => {
      const { terminal } = context
      const { policies } = new Airlock({ role: 'admin' })
      const scope = scopeOf(options)
      const found =
        name === undefined
          ? await policies.list(scope)
          : (await policies.versions(name, { ...scope, limit: 200 })).items
      if (options.json === true) return terminal.printJson(found)
      const head = ['NAME', 'VERSION', 'STATE', 'CREATED', 'BY']
      await terminal.print(renderTable(terminal, head, found.map(versionRow)))
    })
}

function versionRow({ name, version, inForce, createdAt, createdBy }: PolicyVersion): Row {
  const state: Cell = inForce ? { text: 'in force', style: 'green' } : { text: 'out of force', style: 'dim' }
  return [name, `${version}`, state, createdAt, createdBy]
}

function addGet(policy: Command, context: Context): void {
  scoped(policy.command('get').description('Print the document of a policy, as it can be put again.'))
    .argument('<name>', 'the policy')
    .option('--version <number>', 'not the latest one', parseNumber)
    .action(async (name: string, options: Scoped & { readonly version?: number }) => {
      const { policies } = new Airlock({ role: 'admin' })
      const found = await policies.get(name, { ...scopeOf(options), version: options.version })
      if (options.json === true) return context.terminal.printJson(found)
      await context.terminal.printJson(found.document, 'page')
    })
}

function addPut(policy: Command, context: Context): void {
  scoped(policy.command('put').description('Put a new version of a policy into force.'))
    .argument('<file>', 'a document as JSON; - reads stdin')
    .option('--expect <version>', 'fail when the latest version is another; 0 for none', parseNumber)
    .action(async (file: string, options: Scoped & { readonly expect?: number }) => {
      const { policies } = new Airlock({ role: 'admin' })
      const put = await policies.put(await readDocument(file), { ...scopeOf(options), expectedVersion: options.expect })
      if (options.json === true) return context.terminal.printJson(put)
      await context.terminal.print(`${put.name}@${put.version}`)
    })
}

function addRm(policy: Command, context: Context): void {
  scoped(policy.command('rm').description('Take a policy out of force. Its versions are kept.'))
    .argument('<name>', 'the policy')
    .action(async (name: string, options: Scoped) => {
      await new Airlock({ role: 'admin' }).policies.remove(name, scopeOf(options))
      if (options.json === true) return context.terminal.printJson({ name })
      await context.terminal.print(name)
    })
}

function addCheck(policy: Command, context: Context): void {
  withJson(policy.command('check').description('Compile a policy and try its examples. Nothing is stored.'))
    .argument('<file>', 'a document as JSON; - reads stdin')
    .action(async (file: string, options: JsonOption) => {
      const { terminal } = context
      const checked = await new Airlock({ role: 'admin' }).policies.check(await readDocument(file))
      if (!checked.isValid) context.exitCode = 1
      if (options.json === true) return terminal.printJson(checked)
      for (const problem of checked.problems) terminal.note(problem)
      if (checked.isValid) await terminal.print(`${checked.rules} rules and ${checked.examples} examples hold.`)
    })
}

interface BacktestOptions extends JsonOption {
  readonly since?: string
  readonly until?: string
  readonly limit?: number
}

function addBacktest(policy: Command, context: Context): void {
  withJson(policy.command('backtest').description('Show what a policy would have changed in what was decided before.'))
    .argument('<file>', 'a document as JSON; - reads stdin')
    .option('--since <time>', 'decisions from this time on, or from this long ago on, like 1h', parseMoment)
    .option('--until <time>', 'decisions up to this time, or up to this long ago', parseMoment)
    .option('--limit <count>', 'at most so many, newest first', parseNumber)
    .action(async (file: string, options: BacktestOptions) => {
      const { since, until, limit } = options
      const { policies } = new Airlock({ role: 'admin' })
      const found = await policies.backtest(await readDocument(file), { since, until, limit })
      if (options.json === true) return context.terminal.printJson(found)
      await printBacktest(context, found)
    })
}

async function printBacktest({ terminal }: Context, found: Backtest): Promise<void> {
  const { replayed, changed, changes, examples, partial, truncated } = found
  const moves = changes.map(({ from, to, count }) => `${count} from ${from} to ${to}`)
  await terminal.print(
    `${changed} of ${replayed} decisions would change${moves.length > 0 ? `: ${moves.join(', ')}` : ''}.`,
  )
  if (partial > 0) terminal.note(`Of ${partial} the evidence holds only a part, which is what was looked at.`)
  if (truncated) terminal.note('There were more decisions than were looked at.')
  if (examples.length === 0) return
  const rows = examples.map(({ ts, point, before, after, operation }): Row => {
    const rule = after.rules[0]
    const why = rule ? `${rule.policy}/${rule.rule}` : '-'
    return [ts, point, effectCell(before.effect), effectCell(after.effect), why, JSON.stringify(operation).slice(0, 80)]
  })
  await terminal.print(renderTable(terminal, ['TIME', 'POINT', 'BEFORE', 'AFTER', 'RULE', 'OPERATION'], rows))
}

/** What it says is for the server to judge. */
async function readDocument(file: string): Promise<PolicyDocumentInput> {
  const given = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8')
  try {
    return parseDocument(given)
  } catch (cause) {
    throw new AirlockError('policy_invalid', `${file} is not JSON.`, { cause })
  }
}

function parseDocument(given: string): PolicyDocumentInput {
  return JSON.parse(given) as PolicyDocumentInput
}

function parseNumber(given: string): number {
  if (!/^\d{1,9}$/.test(given)) throw new InvalidArgumentError('Use a whole number.')
  return Number(given)
}
