import { AirlockError as RegistryError, isErrorCode, type ErrorCode } from '@airlock/contract/errors'

export type { ErrorCode } from '@airlock/contract/errors'

interface Options {
  readonly cause?: unknown
  readonly hint?: string
  readonly retryAfterS?: number
  readonly requestId?: string
  readonly approval?: string
}

/** What every call of the SDK throws: a code of the registry, one sentence, and a hint that says who can fix it. */
export class AirlockError extends RegistryError {
  /** Names the request in the server's log; undefined when no server answered. */
  readonly requestId: string | undefined

  constructor(code: ErrorCode, message?: string, options: Options = {}) {
    const { requestId, ...rest } = options
    super(code, message, rest)
    this.requestId = requestId
  }
}

/** An error answer as an error. A code that this version does not know becomes `internal` with the server's words. */
export async function parseErrorAnswer(response: Response): Promise<AirlockError> {
  const text = await response.text().catch(() => '')
  const requestId = response.headers.get('x-request-id') ?? undefined
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retry = Number.isFinite(seconds) ? { retryAfterS: seconds } : {}
  const told = parseError(text)
  if (!told)
    return new AirlockError('internal', `The server answered ${response.status} and no error of ours.`, {
      hint: 'Check that AIRLOCK_URL is an Airlock server.',
      ...(requestId === undefined ? {} : { requestId }),
    })
  return toError(told, { ...retry, ...(requestId === undefined ? {} : { requestId }) })
}

interface Told {
  readonly code: string
  readonly message: string
  readonly hint: string
  /** What a person must approve, or has rejected. */
  readonly approval?: string | undefined
}

export function toError(told: Told, options: Options = {}): AirlockError {
  const code = isErrorCode(told.code) ? told.code : 'internal'
  const { approval } = told
  return new AirlockError(code, told.message, {
    ...options,
    hint: told.hint,
    ...(approval === undefined ? {} : { approval }),
  })
}

function parseError(text: string): Told | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: Partial<Told> }
    const { code, message, hint, approval } = error ?? {}
    if (typeof code !== 'string' || typeof message !== 'string') return undefined
    const told = { code, message, hint: typeof hint === 'string' ? hint : '' }
    return typeof approval === 'string' ? { ...told, approval } : told
  } catch {
    // Not JSON: something else than our server answered.
    return undefined
  }
}
