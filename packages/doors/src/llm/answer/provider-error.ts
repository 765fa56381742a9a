import { AirlockError } from '@airlock/contract'
import { z } from 'zod'
import { isRecord } from '../json/is-record.ts'
import type { CallName } from '../routes/find-route.ts'
import { UsageMeter } from '../usage/usage-meter.ts'
import type { Usage } from '../usage/usage.ts'
import { mask } from './mask.ts'

/** How a provider refused a call. */
export interface ProviderFailure {
  readonly status: number
  readonly retryAfter: string | undefined
  /** Undefined when it was too long, or broke off. */
  readonly body: Buffer | undefined
}

export interface TypedFailure {
  readonly error: AirlockError
  readonly status: number
}

/** Longer bodies are not read. */
export const MAX_ERROR_BYTES = 64 * 1024
const ACCOUNT_TYPES: ReadonlySet<unknown> = new Set(['insufficient_quota', 'billing_error'])
const MAX_RETRY_AFTER_S = 86_400

const errorObject = z.object({
  error: z.object({
    message: z.string(),
    type: z.string().nullish(),
    code: z.union([z.string(), z.number()]).nullish(),
  }),
})
type Said = z.infer<typeof errorObject>['error']

/**
 * The error in place of the provider's own, whose text may hold what callers must not see: keys, accounts, addresses. Only
 * what a provider says of a request that it rejects is passed on, and of that only its message, masked.
 */
export function typeFailure({ status, retryAfter, body }: ProviderFailure): TypedFailure {
  const said = readError(body)
  const options = readRetryAfter(retryAfter)
  if ([401, 402, 403].includes(status) || isAccount(said)) return typed(new AirlockError('upstream_refused'))
  if (status === 404) return typed(new AirlockError('model_not_found', 'The model provider has no such model.'))
  if (status === 429) return typed(new AirlockError('upstream_busy', undefined, options))
  if (status === 408 || (status >= 500 && status <= 599))
    return typed(new AirlockError('upstream_failed', undefined, options))
  if (status < 400 || status > 499) return typed(new AirlockError('upstream_broken'))
  const message = said ? `The model provider rejected the request: ${mask(said.message)}` : undefined
  return { error: new AirlockError('upstream_rejected', message), status }
}

/** The error in place of one that a provider sends in the middle of a stream. */
export function typeStreamError(error: unknown): AirlockError {
  const said = errorObject.safeParse({ error }).data?.error
  if (isAccount(said)) return new AirlockError('upstream_refused')
  const isBusy = /rate_limit|overloaded/.test(`${said?.type ?? ''} ${said?.code ?? ''}`)
  return new AirlockError(isBusy ? 'upstream_busy' : 'upstream_failed')
}

/** Usage in the body of a failure. Providers have none there; a gateway may. */
export type FailureUsage = Usage | 'none' | 'unreadable'

export function usageOfFailure(name: CallName, bytes: Buffer): FailureUsage {
  const body = parseJson(bytes)
  if (!isRecord(body) || body['usage'] === undefined || body['usage'] === null) return 'none'
  const meter = new UsageMeter(name)
  meter.takeBody(body)
  return meter.usage === 'missing' ? 'unreadable' : meter.usage
}

function typed(error: AirlockError): TypedFailure {
  return { error, status: error.status }
}

function readError(body: Buffer | undefined): Said | undefined {
  if (!body || body.length > MAX_ERROR_BYTES) return undefined
  return errorObject.safeParse(parseJson(body)).data?.error
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    // Not JSON: nothing of it is passed on or counted.
    return undefined
  }
}

/** Whether it is about the account of the server, which providers say with statuses that mean other things. */
function isAccount(said: Said | undefined): boolean {
  if (!said) return false
  return ACCOUNT_TYPES.has(said.type) || ACCOUNT_TYPES.has(said.code) || /credit balance/i.test(said.message)
}

function readRetryAfter(value: string | undefined): { retryAfterS?: number } {
  const seconds = /^\d{1,6}$/.test(value ?? '') ? Number(value) : undefined
  return seconds === undefined ? {} : { retryAfterS: Math.min(seconds, MAX_RETRY_AFTER_S) }
}
