import { isAirlockError } from '@airlock/contract/errors'
import { CommanderError } from 'commander'
import { sanitizeLine } from './text/sanitize.ts'
import type { Terminal } from './text/terminal.ts'
import { UsageError } from './usage.ts'

const FAILED = 1
const USAGE = 2
const UNREACHABLE = 3

/** What the server answered, for scripts: the status of the error → exit code. */
const ANSWERED: Readonly<Record<number, number>> = { 401: 4, 402: 4, 403: 4, 423: 4, 428: 4, 404: 5, 409: 6, 410: 6 }

/** Ends a verb with an exit code and no word: what is to be said was said. */
export class Exit extends Error {
  readonly exitCode: number

  constructor(exitCode: number) {
    super(`exit ${exitCode}`)
    this.exitCode = exitCode
  }
}

/** Says what went wrong and who can fix it, and answers the exit code. */
export function reportFailure(terminal: Terminal, thrown: unknown): number {
  if (thrown instanceof Exit) return thrown.exitCode
  // Commander has printed its own message, or the help that was asked for.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : USAGE
  if (isServerPart(thrown)) {
    terminal.note(NO_SERVER)
    return FAILED
  }
  if (thrown instanceof UsageError) {
    printError(terminal, thrown.message, thrown.hint)
    return USAGE
  }
  const { message, code, hint } = describe(thrown)
  printError(terminal, `${message} (${code})`, hint)
  if (code === 'server_unreachable') return UNREACHABLE
  return isAirlockError(thrown) ? (ANSWERED[thrown.status] ?? FAILED) : FAILED
}

function printError(terminal: Terminal, message: string, hint: string): void {
  process.stderr.write(`${terminal.style('red', 'error:', 'stderr')} ${sanitizeLine(message)}\n`)
  if (hint !== '') process.stderr.write(`${terminal.style('dim', sanitizeLine(hint), 'stderr')}\n`)
}

const NO_SERVER =
  'airlock: the server is not part of this install; start it from its repository, and set AIRLOCK_URL here to use it.'

/** A verb needs a package of the server, and what users install has none of them. */
function isServerPart(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || !('code' in thrown)) return false
  return thrown.code === 'ERR_MODULE_NOT_FOUND' && thrown.message.includes("'@airlock/")
}

function describe(thrown: unknown): { readonly message: string; readonly code: string; readonly hint: string } {
  if (isAirlockError(thrown)) return { message: thrown.message, code: thrown.code, hint: requestHint(thrown) }
  if (isMissingFile(thrown))
    return { message: `There is no file or directory ${thrown.path}.`, code: thrown.code, hint: '' }
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'internal'
  return { message, code, hint: '' }
}

/** A path of this machine that somebody gave us. */
function isMissingFile(thrown: unknown): thrown is Error & { readonly code: 'ENOENT'; readonly path: string } {
  if (!(thrown instanceof Error) || !('code' in thrown) || !('path' in thrown)) return false
  return thrown.code === 'ENOENT' && typeof thrown.path === 'string'
}

/** A fault of the server is found in its log by the id of the request. */
function requestHint(error: {
  readonly hint: string
  readonly code: string
  readonly requestId?: string | undefined
}): string {
  const isFault = error.code === 'internal' && error.requestId !== undefined
  return isFault ? `${error.hint} Request ${error.requestId}.` : error.hint
}
