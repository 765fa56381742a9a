import { Airlock, type Budget, type SetBudgetBody } from '@airlock/sdk'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { renderTable } from '../text/table.ts'
import { formatBytes, parseSize } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface Whose extends JsonOption {
  readonly tenant?: boolean
}

export function defineBudget(budget: Command, context: Context): void {
  addGet(budget, context)
  addSet(budget, context)
}

function addGet(budget: Command, context: Context): void {
  whose(budget.command('get').description('Show what an agent may use, and how much of it is taken.')).action(
    async (id: string, options: Whose) => {
      const { budgets } = new Airlock({ role: 'admin' })
      await show(context, options, options.tenant === true ? await budgets.ofTenant(id) : await budgets.ofAgent(id))
    },
  )
}

function addSet(budget: Command, context: Context): void {
  whose(
    budget
      .command('set')
      .description('Set limits; those that are not given stay. "default" goes back to that of the server.'),
  )
    .option('--sandboxes <count>', 'sandboxes at once', orDefault(parseCount))
    .option('--memory <size>', 'their memory together, such as 4g', orDefault(parseSize))
    .option('--disk <size>', 'their disks together, such as 20g', orDefault(parseSize))
    .option('--cpus <number>', 'their processors together', orDefault(parseAmount))
    .option('--compute-seconds <count>', 'seconds of processor time in a day', orDefault(parseCount))
    .option('--dollars <amount>', 'dollars in a day', orDefault(parseAmount))
    .option('--model-calls <count>', 'calls of models in a day', orDefault(parseCount))
    .option('--model-tokens <count>', 'their tokens in a day', orDefault(parseCount))
    .action(async (id: string, options: SetFlags) => {
      const { budgets } = new Airlock({ role: 'admin' })
      const limits = toBody(options)
      const set = options.tenant === true ? budgets.setTenant(id, limits) : budgets.setAgent(id, limits)
      await show(context, options, await set)
    })
}

/** A limit, or that the one of the server should hold. */
type Given = number | 'default'

interface SetFlags extends Whose {
  readonly sandboxes?: Given
  readonly memory?: Given
  readonly disk?: Given
  readonly cpus?: Given
  readonly computeSeconds?: Given
  readonly dollars?: Given
  readonly modelCalls?: Given
  readonly modelTokens?: Given
}

function toBody(flags: SetFlags): SetBudgetBody {
  const { sandboxes, memory, disk, cpus, computeSeconds, dollars } = flags
  return {
    sandboxes: toLimit(sandboxes),
    memoryBytes: toLimit(memory),
    diskBytes: toLimit(disk),
    cpus: toLimit(cpus),
    computeSecondsPerDay: toLimit(computeSeconds),
    dollarsPerDay: toLimit(dollars),
    modelCallsPerDay: toLimit(flags.modelCalls),
    modelTokensPerDay: toLimit(flags.modelTokens),
  }
}

/** What is undefined is not sent, and so stays as it is. */
function toLimit(given: Given | undefined): number | null | undefined {
  return given === 'default' ? null : given
}

function whose(command: Command): Command {
  return withJson(command)
    .argument('<id>', 'an agent, or a tenant with --tenant')
    .option('--tenant', 'of a tenant as a whole')
}

async function show(context: Context, options: JsonOption, budget: Budget): Promise<void> {
  const { terminal } = context
  if (options.json === true) return terminal.printJson(budget)
  const { limits, reserved, spent } = budget
  const from = (name: Budget['set'][number]) => (budget.set.includes(name) ? 'set' : 'default')
  const rows = [
    ['sandboxes', `${reserved.sandboxes}`, `${limits.sandboxes}`, from('sandboxes')],
    ['memory', formatBytes(reserved.memoryBytes), formatBytes(limits.memoryBytes), from('memoryBytes')],
    ['disk', formatBytes(reserved.diskBytes), formatBytes(limits.diskBytes), from('diskBytes')],
    ['cpus', `${reserved.cpus}`, `${limits.cpus}`, from('cpus')],
    [
      'compute seconds today',
      spent.computeSeconds.toFixed(1),
      `${limits.computeSecondsPerDay}`,
      from('computeSecondsPerDay'),
    ],
    ['dollars today', spent.dollars.toFixed(2), limits.dollarsPerDay.toFixed(2), from('dollarsPerDay')],
    ['model calls today', `${spent.modelCalls}`, `${limits.modelCallsPerDay}`, from('modelCallsPerDay')],
    ['model tokens today', `${spent.modelTokens}`, `${limits.modelTokensPerDay}`, from('modelTokensPerDay')],
  ]
  await terminal.print(renderTable(terminal, ['LIMIT', 'TAKEN', 'OF', 'FROM'], rows))
}

function orDefault(parse: (text: string) => number): (text: string) => Given {
  return (text) => (text === 'default' ? text : parse(text))
}

function parseAmount(text: string): number {
  if (!/^\d+(?:\.\d+)?$/.test(text)) throw new InvalidArgumentError('Use a number, or "default".')
  return Number(text)
}

function parseCount(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Use a whole number, or "default".')
  return Number(text)
}
