import { DEFAULTS } from '@airlock/contract/defaults'
import type { StepOptions } from '@airlock/sdk'
import type { Command } from 'commander'
import { waitApprovalOption } from './command-options.ts'
import { collectPairs, collectWords } from '../text/pairs.ts'
import { readStdin } from '../run/read-code.ts'
import { addSandboxOptions, type SandboxOptions } from './sandbox-options.ts'
import { durationWithin, formatDuration } from '../text/units.ts'

export interface CodeOptions extends SandboxOptions {
  readonly sandbox?: string
  readonly timeout?: number
  readonly env?: Readonly<Record<string, string>>
  readonly with?: readonly string[]
  readonly all?: boolean
  readonly stdin?: boolean
  readonly waitApproval?: number
}

/** The options of whatever runs code in an interpreter. */
export function addCodeOptions(command: Command): Command {
  const timeout = formatDuration(DEFAULTS.commandTimeoutMs.default)
  const verb = command.option('--sandbox <sandbox>', 'a sandbox that is there, by id or name (default: a new one)')
  const own = addFileOptions(
    verb
      .option(
        '--timeout <duration>',
        `time until code is interrupted (default: ${timeout})`,
        durationWithin(DEFAULTS.commandTimeoutMs),
      )
      .option('--env <key=value>', 'an environment variable; may be given several times', collectPairs)
      .addOption(waitApprovalOption()),
  )
  return addSandboxOptions(own, 'base; data for a prompt of Python and what imports from it')
}

/** The options of whatever runs a program of this machine. */
export function addFileOptions(command: Command): Command {
  const about = 'a file or directory to copy into /workspace first; may be given several times'
  return command
    .option('--with <path>', about, collectWords)
    .option('--all', 'with --with: also .git, node_modules and what .airlockignore names')
    .option('--stdin', 'read stdin to its end first, and give it to the code')
}

export interface OutOptions {
  readonly out?: readonly string[]
  readonly artifact?: readonly string[]
}

/** For what has an end, and a sandbox of its own. */
export function addOutOption(command: Command): Command {
  const about = 'a file or directory to copy into this directory when it has ended; may be given several times'
  const kept = 'files to keep as artifacts when it has ended, such as out/**; may be given several times'
  return command.option('--out <path>', about, collectWords).option('--artifact <pattern>', kept, collectWords)
}

export async function toStepOptions(options: CodeOptions): Promise<StepOptions> {
  return {
    ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
    ...(options.stdin === true ? { stdin: await readStdin('input') } : {}),
  }
}
