import type { Limits } from '@airlock/contract'
import { closeSync, constants, existsSync, fchmodSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { makeDirectory } from './images/image.ts'

/** Files of /proc by which programs size themselves: in a sandbox they say what it has, not what the host has. */
export const PROC_FILES = ['cpuinfo', 'meminfo', 'stat'] as const
type ProcFile = (typeof PROC_FILES)[number]
type Size = Pick<Limits, 'memoryBytes' | 'cpus'>

/** What of the host is in them. It does not change while it runs. */
interface HostProc {
  /** As the kernel says it, a paragraph for each processor. */
  readonly cpuinfo: string
  readonly processors: number
  readonly bootedAt: number
}

/** Writes them for each sandbox, into a directory of which the files are mounted over those of /proc. */
export class ProcFiles {
  readonly #host = readHost()

  make(dir: string, size: Size): void {
    makeDirectory(dir)
    this.#put(dir, size, constants.O_CREAT)
  }

  /** In place, so that the sandbox sees it. One of an earlier version has none. */
  change(dir: string, size: Size): void {
    if (existsSync(dir)) this.#put(dir, size, 0)
  }

  #put(dir: string, size: Size, flags: number): void {
    for (const [name, text] of Object.entries(procFiles(size, this.#host))) {
      const fd = openSync(join(dir, name), constants.O_WRONLY | flags, 0o644)
      try {
        fchmodSync(fd, 0o644)
        ftruncateSync(fd, writeSync(fd, text, 0))
      } finally {
        closeSync(fd)
      }
    }
  }
}

export function procFiles({ memoryBytes, cpus }: Size, host: HostProc): Readonly<Record<ProcFile, string>> {
  const processors = Math.min(Math.ceil(cpus), host.processors)
  return { cpuinfo: cpuinfo(host.cpuinfo, processors), meminfo: meminfo(memoryBytes), stat: stat(processors, host) }
}

/** Of one length, whatever the numbers are: written over another, it is never half of each. */
function meminfo(memoryBytes: number): string {
  const whole = Math.floor(memoryBytes / 1024)
  return MEMORY.map((name) => `${`${name}:`.padEnd(16)}${String(WHOLE.has(name) ? whole : 0).padStart(12)} kB\n`).join(
    '',
  )
}

/** The limit. What is used of it is in the metrics of the sandbox, for nothing here is written again as it changes. */
const WHOLE: ReadonlySet<string> = new Set(['MemTotal', 'MemFree', 'MemAvailable', 'CommitLimit'])
const MEMORY = ['MemTotal', 'MemFree', 'MemAvailable', 'Buffers', 'Cached', 'SwapCached', 'Active', 'Inactive'].concat(
  ['Active(anon)', 'Inactive(anon)', 'Active(file)', 'Inactive(file)', 'Unevictable', 'Mlocked', 'SwapTotal'],
  ['SwapFree', 'Dirty', 'Writeback', 'AnonPages', 'Mapped', 'Shmem', 'KReclaimable', 'Slab', 'SReclaimable'],
  ['SUnreclaim', 'KernelStack', 'PageTables', 'CommitLimit', 'Committed_AS'],
)

/** The kernel counts no processor time of a sandbox in this form: all of it is 0. */
function stat(processors: number, { bootedAt }: HostProc): string {
  const times = '0 0 0 0 0 0 0 0 0 0'
  const each = Array.from({ length: processors }, (_, at) => `cpu${at} ${times}`)
  const rest = [`btime ${bootedAt}`, 'processes 0', 'procs_running 1', 'procs_blocked 0', `softirq ${times} 0`]
  return [`cpu  ${times}`, ...each, 'intr 0', 'ctxt 0', ...rest].map((line) => `${line}\n`).join('')
}

function cpuinfo(text: string, processors: number): string {
  const paragraphs = text.split('\n\n').filter((paragraph) => paragraph.trim() !== '')
  return paragraphs
    .filter((paragraph) => Number(/^processor\s*:\s*(\d+)/mu.exec(paragraph)?.[1] ?? 0) < processors)
    .map((paragraph) => `${paragraph.replaceAll(/^(siblings|cpu cores)(\s*): \d+$/gmu, `$1$2: ${processors}`)}\n\n`)
    .join('')
}

function readHost(): HostProc {
  const lines = readFileSync('/proc/stat', 'utf8')
  return {
    cpuinfo: readFileSync('/proc/cpuinfo', 'utf8'),
    processors: lines.match(/^cpu\d+ /gmu)?.length ?? 1,
    bootedAt: Number(/^btime (\d+)$/mu.exec(lines)?.[1] ?? 0),
  }
}
