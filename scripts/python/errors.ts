import { ERRORS, type ErrorCode } from '@airlock/contract'
import { literal } from './types.ts'

/** A class per family, which is a status; those of 413 and 415 are requests that are not valid too. */
const FAMILIES: Readonly<Record<number, readonly [name: string, about: string]>> = {
  400: ['InvalidRequestError', 'The request is not valid.'],
  401: ['AuthenticationError', 'No key, or one that the server does not accept.'],
  402: ['BudgetExhaustedError', 'A quota of the agent or the tenant is used up.'],
  403: ['ForbiddenError', 'The key or the agent may not do this.'],
  404: ['NotFoundError', 'The thing that was named does not exist.'],
  409: ['ConflictError', 'The state of the thing does not allow this.'],
  410: ['EndedError', 'The sandbox or session has ended.'],
  413: ['InvalidRequestError', ''],
  415: ['InvalidRequestError', ''],
  416: ['InvalidRequestError', ''],
  422: ['UnprocessableError', 'The request is well formed, and cannot be carried out.'],
  423: ['KilledError', 'A killswitch is on.'],
  428: ['ApprovalRequiredError', 'A person must approve it; `approval` is the id of the request for that.'],
  429: ['TooManyError', 'A limit on rate or count is reached.'],
  500: ['InternalError', 'Something went wrong in the server or its configuration.'],
  502: ['UpstreamError', 'A provider behind the server failed.'],
  503: ['UnavailableError', 'The server or a part of it does not answer now.'],
  504: ['TimedOutError', 'It took too long.'],
  507: ['DiskError', 'The disk of the sandbox is full or broken.'],
}

/** Codes with a class of their own, below that of their family. */
const SPECIAL: Readonly<Partial<Record<ErrorCode, readonly [name: string, about: string]>>> = {
  policy_denied: ['PolicyDeniedError', 'A policy denies it.'],
  server_unreachable: ['UnreachableError', 'No server answers, or the connection broke.'],
}

/** The error classes, and the table of codes. */
export function pythonErrors(): string {
  const families = new Map(Object.values(FAMILIES).map(([name]) => [name, aboutOf(name)]))
  const classes = [...families].map(([name, about]) => declare(name, 'AirlockError', about))
  const special = Object.entries(SPECIAL).map(([code, [name, about]]) =>
    declare(name, familyOf(code as ErrorCode), about),
  )
  const rows = Object.entries(ERRORS).map(([code, row]) => {
    const cells = [row.status, row.retryable, row.message, row.hint, row.fixedBy].map(literal)
    const name = SPECIAL[code as ErrorCode]?.[0] ?? familyOf(code as ErrorCode)
    return `    ${literal(code)}: ErrorRow(${[...cells, name].join(', ')}),`
  })
  const table = `ERRORS: Dict[str, ErrorRow] = {\n${rows.join('\n')}\n}`
  return [...classes, ...special, ROW, table].join('\n\n\n')
}

const ROW = `class ErrorRow(NamedTuple):
    """A row of the registry of errors."""

    status: int
    retryable: bool
    message: str
    hint: str
    fixed_by: str
    error: Type[AirlockError]`

function declare(name: string, base: string, about: string): string {
  return `class ${name}(${base}):\n    """${about}"""`
}

function familyOf(code: ErrorCode): string {
  const family = FAMILIES[ERRORS[code].status]
  if (!family) throw new TypeError(`No family of errors has the status ${ERRORS[code].status}: add it to FAMILIES.`)
  return family[0]
}

function aboutOf(name: string): string {
  return Object.values(FAMILIES).find(([one, about]) => one === name && about !== '')?.[1] ?? ''
}
