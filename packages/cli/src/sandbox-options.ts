import { DEFAULTS } from '@airlock/contract/defaults'
import type { CreateOptions } from '@airlock/sdk'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { collectPairs } from './pairs.ts'
import { formatBytes, formatDuration, parseDuration, parseSize } from './units.ts'

export interface SandboxOptions {
  readonly name?: string
  readonly template?: string
  readonly agent?: string
  readonly memory?: number
  readonly cpus?: number
  readonly disk?: number
  readonly pids?: number
  readonly tier?: 'standard' | 'strict'
  readonly ttl?: number
  readonly idle?: number
  readonly pauseWhenIdle?: boolean
  readonly label?: Readonly<Record<string, string>>
}

/** The options of whatever makes a sandbox. Their defaults are the server's. */
export function addSandboxOptions(command: Command, template = 'base'): Command {
  return command
    .option('--name <name>', 'a name, unique among the living sandboxes of its agent')
    .option('--template <template>', `what it is made from (default: ${template})`)
    .option('--agent <agent>', 'who it runs for (default: default)')
    .option('--memory <size>', `memory (default: ${formatBytes(DEFAULTS.memoryBytes.default)})`, parseSize)
    .option('--cpus <number>', `processors (default: ${DEFAULTS.cpus.default})`, parseNumber)
    .option('--disk <size>', `disk (default: ${formatBytes(DEFAULTS.diskBytes.default)})`, parseSize)
    .option('--pids <number>', `processes (default: ${DEFAULTS.pids.default})`, parseNumber)
    .addOption(
      new Option('--tier <tier>', 'how it is isolated, at least (default: as its template says)').choices([
        'standard',
        'strict',
      ]),
    )
    .option(
      '--ttl <duration>',
      `life after its last use (default: ${formatDuration(DEFAULTS.ttlMs.default)})`,
      parseDuration,
    )
    .option(
      '--idle <duration>',
      `longest time without use (default: ${formatDuration(DEFAULTS.idleMs.default)})`,
      parseDuration,
    )
    .option('--pause-when-idle', 'pause it then, instead of ending it; its next use resumes it')
    .option('--label <key=value>', 'a label; may be given several times', collectPairs)
}

export function toCreateOptions(options: SandboxOptions): CreateOptions {
  const limits = defined({
    memoryBytes: options.memory,
    cpus: options.cpus,
    diskBytes: options.disk,
    pids: options.pids,
  })
  return defined({
    name: options.name,
    template: options.template,
    agent: options.agent,
    tier: options.tier,
    labels: options.label,
    ttlMs: options.ttl,
    idleMs: options.idle,
    onIdle: options.pauseWhenIdle === true ? ('pause' as const) : undefined,
    limits: Object.keys(limits).length > 0 ? limits : undefined,
  })
}

export function parseNumber(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || !Number.isFinite(number)) throw new InvalidArgumentError('Use a number.')
  return number
}

/** Without the fields that were not given: the server has the defaults. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given: object = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  return given
}
