import { isTypo } from '@airlock/std'
import { UsageError } from './usage.ts'

/** What other products call it. */
const WORDS: Readonly<Record<string, string>> = {
  ...of('airlock ls', ['ps', 'list', 'containers', 'sandboxes']),
  ...of('airlock ls, or: airlock doctor', ['status', 'info']),
  ...of('airlock terminate SANDBOX', ['stop', 'delete', 'remove', 'destroy', 'del']),
  ...of('airlock pause SANDBOX', ['suspend', 'freeze']),
  ...of('airlock resume SANDBOX', ['unpause', 'thaw']),
  ...of('airlock create', ['start', 'new', 'spawn', 'up']),
  ...of('airlock bash, or in a sandbox that is there: airlock bash --sandbox SANDBOX', [
    'shell',
    'sh',
    'ssh',
    'attach',
  ]),
  ...of('airlock python', ['python3', 'py', 'ipython', 'repl']),
  ...of('airlock node', ['nodejs', 'js', 'ts', 'tsx', 'deno', 'bun']),
  ...of('airlock template ls', ['image', 'images', 'templates']),
  ...of('airlock template build NAME --package PACKAGE', ['build', 'install', 'pip', 'npm', 'apt', 'apt-get']),
  ...of('airlock template import NAME ROOTFS.tar, or: airlock template build NAME --package PACKAGE', [
    'pull',
    'import',
    'load',
  ]),
  ...of('airlock top', ['stats', 'monitor', 'htop']),
  ...of('airlock cp', ['copy', 'upload', 'download', 'push', 'get', 'put']),
  ...of('airlock logs SANDBOX COMMAND', ['log', 'output', 'tail']),
  ...of('airlock grant add', ['mount', 'volume', 'volumes', 'share']),
  ...of('airlock keys, or: airlock whoami', ['login', 'logout', 'auth', 'key', 'token']),
  ...of('airlock --version', ['version']),
  ...of('airlock budget get', ['quota', 'budgets']),
  ...of('airlock session ls', ['sessions']),
  ...of('airlock agent ls', ['agents']),
  ...of('airlock approvals approve ID', ['approve', 'reject', 'approval']),
}

/** Words for something that no sandbox has. */
const ABSENT: Readonly<Record<string, string>> = {
  ...of('Sandboxes have no network: nothing outside can reach a port in one.', ['port', 'ports', 'expose', 'network']),
  ...of('A sandbox cannot be saved. Make a template, or copy its files out: airlock cp SANDBOX:PATH .', [
    'commit',
    'save',
    'snapshot',
    'fork',
    'clone',
  ]),
}

/** The error for a first word that is no verb. */
export function unknownVerb(word: string, verbs: readonly string[]): UsageError {
  const typo = verbs.filter((verb) => isTypo(word, verb))
  const meant = own(WORDS, word) ?? typo.map((verb) => `airlock ${verb}`).join(', or: ')
  const hint = own(ABSENT, word) ?? (meant === '' ? 'All of them: airlock --help' : `Use: ${meant}`)
  return new UsageError(`There is no command ${word}.`, hint)
}

function own(table: Readonly<Record<string, string>>, word: string): string | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined
}

function of(meant: string, words: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(words.map((word) => [word, meant]))
}
