import { existsSync } from 'node:fs'
import { environment, ROOT_STATE, type Environment } from '../config.ts'
import { isServiceInstalled } from '../systemd/install.ts'
import { unlinkCommand } from './link.ts'
import { typedCommand } from './typed.ts'

/** Where the verb prints, and what it finds. */
export interface UninstallIo {
  readonly env: Environment
  readonly uid: number
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly unlink: () => ReturnType<typeof unlinkCommand>
  readonly stateDir: string
}

/** `airlock uninstall`: takes the command out of PATH. Clone, state and evidence stay. Answers the exit code. */
export function uninstall(io: UninstallIo = processIo()): number {
  const { word } = typedCommand(io.env)
  if (io.uid !== 0) return fail(io, `Only root may change the commands of a machine: sudo ${word} uninstall`)
  if (isServiceInstalled()) return fail(io, `Airlock is a service. Remove that first: ${word} service uninstall`)
  const { path, outcome } = io.unlink()
  if (outcome === 'taken') return fail(io, `${path} does not lead to this clone, and stays.`)
  io.out(outcome === 'removed' ? `Removed ${path}.` : `There is no ${path}.`)
  if (existsSync(io.stateDir)) io.out(`State and evidence stay in ${io.stateDir}.`)
  return 0
}

function fail(io: UninstallIo, text: string): number {
  io.err(text)
  return 1
}

function processIo(): UninstallIo {
  return {
    env: environment(),
    uid: process.getuid?.() ?? -1,
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    unlink: () => unlinkCommand(),
    stateDir: ROOT_STATE,
  }
}
