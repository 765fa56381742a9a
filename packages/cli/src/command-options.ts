import { DEFAULTS } from '@airlock/contract/defaults'
import type { CommandLine, CommandOptions } from '@airlock/sdk'
import type { Command } from 'commander'
import { collectPairs } from './pairs.ts'
import { formatDuration, parseDuration } from './units.ts'

export interface RunOptions {
  readonly timeout?: number
  readonly env?: Readonly<Record<string, string>>
  readonly workdir?: string
  readonly shell?: boolean
}

/** The options of whatever runs a command. */
export function addCommandOptions(command: Command): Command {
  const timeout = formatDuration(DEFAULTS.commandTimeoutMs.default)
  return command
    .option('--timeout <duration>', `time until the command is killed (default: ${timeout})`, parseDuration)
    .option('--env <key=value>', 'an environment variable; may be given several times', collectPairs)
    .option('--workdir <path>', 'the directory to run in (default: /workspace)')
    .option('--shell', 'join the words and give them to /bin/sh')
    .passThroughOptions()
}

export function toCommandLine(words: readonly string[], options: RunOptions): CommandLine {
  const argv = words[0] === '--' ? words.slice(1) : words
  return options.shell === true ? { shell: argv.join(' ') } : argv
}

export function toCommandOptions(options: RunOptions): CommandOptions {
  return {
    ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.workdir === undefined ? {} : { cwd: options.workdir }),
  }
}
