import { DEFAULTS } from '@airlock/contract/defaults'
import { Airlock, type CommandLine, type CommandOptions } from '@airlock/sdk'
import { type Command, Option } from 'commander'
import { collectPairs } from '../text/pairs.ts'
import { durationWithin, formatDuration, parseDuration } from '../text/units.ts'

export interface RunOptions {
  readonly timeout?: number
  readonly cpuTime?: number
  readonly env?: Readonly<Record<string, string>>
  readonly workdir?: string
  readonly shell?: boolean
  readonly waitApproval?: number
}

/** The options of whatever runs a command. */
export function addCommandOptions(command: Command): Command {
  const timeout = formatDuration(DEFAULTS.commandTimeoutMs.default)
  return command
    .option(
      '--timeout <duration>',
      `time until the command is killed (default: ${timeout})`,
      durationWithin(DEFAULTS.commandTimeoutMs),
    )
    .option(
      '--cpu-time <duration>',
      'processor time of each process of it, in whole seconds (default: no cap)',
      durationWithin(DEFAULTS.commandCpuMs),
    )
    .option('--env <key=value>', 'an environment variable; may be given several times', collectPairs)
    .option('--workdir <path>', 'the directory to run in (default: /workspace)')
    .option('--shell', 'join the words and give them to /bin/sh')
    .addOption(waitApprovalOption())
    .passThroughOptions()
}

export interface TerminalOptions {
  readonly interactive?: boolean
  readonly tty?: boolean
}

/** As Docker has them: a program has no terminal in a sandbox, and three have a prompt. */
export function addTerminalOptions(command: Command): Command {
  return command
    .option(
      '-i, --interactive',
      'with -t and bash, sh, python3 or node: the prompt of "airlock bash", "python" or "node"',
    )
    .option('-t, --tty', 'the same')
}

/** For whatever a person may have to approve first. */
export function waitApprovalOption(): Option {
  const about = 'how long to wait when a person must approve it first, at most 4m (default: not at all)'
  return new Option('--wait-approval <duration>', about).argParser(parseDuration)
}

/** The server, waited for as long as the options say. */
export function waitingAirlock({ waitApproval }: { readonly waitApproval?: number }): Airlock {
  return new Airlock(waitApproval === undefined ? {} : { waitApprovalS: waitApproval / 1000 })
}

export function toCommandLine(words: readonly string[], options: RunOptions): CommandLine {
  const argv = words[0] === '--' ? words.slice(1) : words
  return options.shell === true ? { shell: argv.join(' ') } : argv
}

export function toCommandOptions(options: RunOptions): CommandOptions {
  return {
    ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
    ...(options.cpuTime === undefined ? {} : { cpuTimeMs: options.cpuTime }),
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.workdir === undefined ? {} : { cwd: options.workdir }),
  }
}
