import { AirlockError, type BudgetLimitName } from '@airlock/contract'
import { formatBytes } from '@airlock/std'
import type { BudgetScope } from '../store/budgets.ts'

interface Amounts {
  readonly used: number
  readonly more: number
  readonly limit: number
}

const MIB = 1024 * 1024

/** The error that names the limit, what is taken of it, and the command that raises it. */
export function exhausted(scope: BudgetScope, name: BudgetLimitName, amounts: Amounts): AirlockError {
  const whose = scope.agent === null ? `The tenant ${scope.tenant}` : `The agent ${scope.agent}`
  const [about, option, instead] = TEXTS[name](amounts)
  const target = scope.agent ?? `${scope.tenant} --tenant`
  const hint = `${instead}, or raise it with the admin key: airlock budget set ${target} ${option}`
  return new AirlockError('budget_exhausted', `${whose} ${about}.`, { hint })
}

type Text = readonly [about: string, option: string, instead: string]

const LESS = 'Ask for less'

const TEXTS: Readonly<Record<BudgetLimitName, (amounts: Amounts) => Text>> = {
  sandboxes: ({ used, limit }) => [
    `may have ${limit} sandboxes at once, and has ${used}`,
    `--sandboxes ${used + 1}`,
    'End one (airlock ls, airlock terminate SANDBOX)',
  ],
  memoryBytes: (amounts) => [`may use ${ofBytes(amounts, 'memory')}`, `--memory ${sizeOf(amounts)}`, LESS],
  diskBytes: (amounts) => [`may use ${ofBytes(amounts, 'disk')}`, `--disk ${sizeOf(amounts)}`, LESS],
  cpus: ({ used, more, limit }) => [
    `may use ${limit} cpus: ${used} are taken, and ${more} more were asked for`,
    `--cpus ${Number((used + more).toFixed(3))}`,
    LESS,
  ],
  computeSecondsPerDay: ({ used, limit }) => [
    `has used up its ${limit} compute seconds of today`,
    `--compute-seconds ${Math.ceil(2 * Math.max(used, limit)) || 1}`,
    'Wait for tomorrow (UTC)',
  ],
  dollarsPerDay: ({ used, limit }) => [
    `has used up its ${limit} dollars of today`,
    `--dollars ${Math.ceil(2 * Math.max(used, limit)) || 1}`,
    'Wait for tomorrow (UTC)',
  ],
  modelCallsPerDay: ({ used, more, limit }) => [
    `may make ${limit} calls of models a day, and has made or begun ${used}`,
    `--model-calls ${Math.max(2 * limit, used + more)}`,
    'Wait for tomorrow (UTC)',
  ],
  modelTokensPerDay: ({ used, more, limit }) => [
    `may use ${limit} tokens a day: ${used} are used or reserved, and the call may use ${more}`,
    `--model-tokens ${2 * (used + more)}`,
    'Ask for fewer tokens',
  ],
}

function ofBytes({ used, more, limit }: Amounts, what: string): string {
  return `${formatBytes(limit)} of ${what}: ${formatBytes(used)} are taken, and ${formatBytes(more)} more were asked for`
}

/** As much as would do. */
function sizeOf({ used, more }: Amounts): string {
  return `${Math.ceil((used + more) / MIB)}m`
}
