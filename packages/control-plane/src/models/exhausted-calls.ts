import { AirlockError, type ModelRouteName } from '@airlock/contract'
import type { BudgetScope } from '../store/budgets.ts'

const RETRY_AFTER_S = 1

/** All in micro-dollars. */
interface Money {
  readonly spent: number
  readonly held: number
  readonly limit: number
}

/** The dollars of the day do not cover the ceiling of the call. */
export function tooDear(scope: BudgetScope, { spent, held, limit }: Money, call: PricedCall): AirlockError {
  const ceiling = call.ceilingMicroDollars
  const target = scope.agent ?? `${scope.tenant} --tenant`
  const left = Math.max(0, limit - spent - held)
  const more = Math.ceil((spent + held + ceiling) / 1e6)
  const fitting = fitOutput(call, limit - spent - held)
  return new AirlockError(
    'budget_exhausted',
    `The call may cost ${dollars(ceiling)}, and ${nameOf(scope)} has ${dollars(left)} left today: ` +
      `${dollars(spent)} of ${dollars(limit)} are spent, ${dollars(held)} are reserved for calls under way.`,
    {
      hint: `${fitting ?? 'Send less'}, or raise it with the admin key: airlock budget set ${target} --dollars ${more}`,
    },
  )
}

interface Amounts {
  readonly used: number
  readonly more: number
  readonly limit: number
}

/** A cap of one sandbox holds for its whole life, and nobody can raise it. */
export function sandboxExhausted(
  name: 'calls' | 'tokens' | 'dollars',
  amounts: Amounts,
  call: PricedCall,
): AirlockError {
  const show = name === 'dollars' ? dollars : String
  const [used, more, limit] = [show(amounts.used), show(amounts.more), show(amounts.limit)]
  const says = {
    calls: `The sandbox may make ${limit} calls of models, and has made or begun ${used}.`,
    tokens: `The sandbox may use ${limit} tokens: ${used} are used or reserved, and the call may use ${more}.`,
    dollars: `The sandbox may spend ${limit}: ${used} are spent or reserved, and the call may cost ${more}.`,
  }
  const left = amounts.limit - amounts.used
  const fitting = { calls: null, tokens: fitTokens(call, left), dollars: fitOutput(call, left) }[name]
  const needed = amounts.used + amounts.more
  const cap = name === 'dollars' ? Math.ceil(needed / 1e4) / 100 : needed
  const other = `make another sandbox with a larger cap: airlock run or create with --model-${name} ${cap}`
  return new AirlockError('budget_exhausted', says[name], {
    hint: fitting === null ? capitalised(other) : `${fitting}, or ${other}`,
  })
}

/** The worst case of a call, as it was reserved. */
export interface PricedCall {
  readonly route: ModelRouteName
  readonly maxOutputTokens: number
  readonly ceilingMicroDollars: number
  readonly ceilingTokens: number
  /** Micro-dollars of a million tokens of output. */
  readonly outputPrice: number
}

/** The remedy in the program: a bound on output that the money left covers. Null where no output would fit. */
function fitOutput({ outputPrice, ...call }: PricedCall, left: number): string | null {
  const input = call.ceilingMicroDollars - Math.ceil((call.maxOutputTokens * outputPrice) / 1e6)
  return outputPrice === 0 ? null : sayFitting(call, Math.floor(((left - Math.max(0, input) - 1) * 1e6) / outputPrice))
}

function fitTokens(call: PricedCall, left: number): string | null {
  return sayFitting(call, left - (call.ceilingTokens - call.maxOutputTokens))
}

function sayFitting({ route, maxOutputTokens }: Omit<PricedCall, 'outputPrice'>, tokens: number): string | null {
  const field = OUTPUT_FIELDS[route]
  if (field === null || tokens < 1 || tokens >= maxOutputTokens) return null
  return `In the program, set ${field} to ${tokens} or less (now up to ${maxOutputTokens} are reserved)`
}

const OUTPUT_FIELDS: Readonly<Record<ModelRouteName, string | null>> = {
  chat: 'max_tokens (or max_completion_tokens; "n" answers share it)',
  responses: 'max_output_tokens',
  messages: 'max_tokens',
  embeddings: null,
  count_tokens: null,
}

function capitalised(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
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
