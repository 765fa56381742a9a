import { AirlockError } from '@airlock/contract'
import type { BudgetScope } from '../store/budgets.ts'

const RETRY_AFTER_S = 1

/** All in micro-dollars. */
interface Money {
  readonly ceiling: number
  readonly spent: number
  readonly held: number
  readonly limit: number
}

/** The dollars of the day do not cover the ceiling of the call. */
export function tooDear(scope: BudgetScope, { ceiling, spent, held, limit }: Money): AirlockError {
  const target = scope.agent ?? `${scope.tenant} --tenant`
  const left = Math.max(0, limit - spent - held)
  const more = Math.ceil((spent + held + ceiling) / 1e6)
  return new AirlockError(
    'budget_exhausted',
    `The call may cost ${dollars(ceiling)}, and ${nameOf(scope)} has ${dollars(left)} left today: ` +
      `${dollars(spent)} of ${dollars(limit)} are spent, ${dollars(held)} are reserved for calls under way.`,
    { hint: `Ask for fewer tokens, or raise it with the admin key: airlock budget set ${target} --dollars ${more}` },
  )
}

interface Amounts {
  readonly used: number
  readonly more: number
  readonly limit: number
}

/** A cap of one sandbox holds for its whole life, and nobody can raise it. */
export function sandboxExhausted(name: 'calls' | 'tokens' | 'dollars', amounts: Amounts): AirlockError {
  const show = name === 'dollars' ? dollars : String
  const [used, more, limit] = [show(amounts.used), show(amounts.more), show(amounts.limit)]
  const says = {
    calls: `The sandbox may make ${limit} calls of models, and has made or begun ${used}.`,
    tokens: `The sandbox may use ${limit} tokens: ${used} are used or reserved, and the call may use ${more}.`,
    dollars: `The sandbox may spend ${limit}: ${used} are spent or reserved, and the call may cost ${more}.`,
  }
  return new AirlockError('budget_exhausted', says[name], {
    hint: `Create another sandbox with a larger cap: airlock create --model-${name} …`,
  })
}

/** Cured by time: a call that ends makes room. */
export function tooManyAtOnce(limit: number): AirlockError {
  return new AirlockError('too_many_requests', `The sandbox may have ${limit} calls of models at once.`, {
    retryAfterS: RETRY_AFTER_S,
    hint: 'Wait for one to end, or create the sandbox with --model-concurrency.',
  })
}

function nameOf({ tenant, agent }: BudgetScope): string {
  return agent === null ? `the tenant ${tenant}` : `the agent ${agent}`
}

/** Rounded up to the sixth digit, without zeros at the end: $0.0125. */
function dollars(microDollars: number): string {
  return `$${Number((microDollars / 1e6).toFixed(6))}`
}
