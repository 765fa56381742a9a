import { DEFAULTS } from '@airlock/contract/defaults'
import type { SomeLimits } from '@airlock/sdk'
import type { Command } from 'commander'
import { formatBytes, formatDuration, numberWithin, sizeWithin } from '../text/units.ts'

export interface LimitOptions {
  readonly memory?: number
  readonly cpus?: number
  readonly disk?: number
  readonly pids?: number
  readonly inodes?: number
  readonly openFiles?: number
  readonly cpuSeconds?: number | 'none'
}

/** What a sandbox is held to. `shown`: their help says what holds when they are not given. */
export function addLimitOptions(command: Command, shown: 'with defaults' | 'alone'): Command {
  const by = (text: string) => (shown === 'alone' ? '' : ` (default: ${text})`)
  return command
    .option(
      '--memory <size>',
      `memory${by(formatBytes(DEFAULTS.memoryBytes.default))}`,
      sizeWithin(DEFAULTS.memoryBytes),
    )
    .option('--cpus <number>', `processors${by(`${DEFAULTS.cpus.default}`)}`, numberWithin(DEFAULTS.cpus))
    .option('--disk <size>', `disk${by(formatBytes(DEFAULTS.diskBytes.default))}`, sizeWithin(DEFAULTS.diskBytes))
    .option('--pids <number>', `processes${by(`${DEFAULTS.pids.default}`)}`, numberWithin(DEFAULTS.pids))
    .option(
      '--inodes <number>',
      `files and directories${by('one for each 16 KiB of disk')}`,
      numberWithin(DEFAULTS.inodes),
    )
    .option(
      '--open-files <number>',
      `open files of each process${by(`${DEFAULTS.openFiles.default}`)}`,
      numberWithin(DEFAULTS.openFiles),
    )
    .option('--cpu-seconds <number>', `processor time in all, or none${by('none')}`, parseCap)
}

/** Those that were given. */
export function toLimits(options: LimitOptions): SomeLimits {
  const { memory, cpus, disk, pids, inodes, openFiles, cpuSeconds } = options
  return {
    ...(memory === undefined ? {} : { memoryBytes: memory }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(disk === undefined ? {} : { diskBytes: disk }),
    ...(pids === undefined ? {} : { pids }),
    ...(inodes === undefined ? {} : { inodes }),
    ...(openFiles === undefined ? {} : { openFiles }),
    ...(cpuSeconds === undefined ? {} : { cpuSeconds: cpuSeconds === 'none' ? null : cpuSeconds }),
  }
}

/** In one line. */
export function formatLimits(limits: Required<SomeLimits>): string {
  const { memoryBytes, cpus, pids, diskBytes, inodes, openFiles, cpuSeconds } = limits
  return [
    `${formatBytes(memoryBytes ?? 0)} memory`,
    `${cpus} cpu`,
    `${pids} pids`,
    `${formatBytes(diskBytes ?? 0)} disk`,
    `${inodes} inodes`,
    `${openFiles} open files`,
    ...(typeof cpuSeconds === 'number' ? [`${formatDuration(cpuSeconds * 1000)} of processor time`] : []),
  ].join(', ')
}

function parseCap(text: string): number | 'none' {
  return text === 'none' ? text : numberWithin(DEFAULTS.cpuSeconds)(text)
}
