import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { arch, cpus, getPriority, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Machine } from './report.ts'
import { quantile, round } from './statistics.ts'

const SYNCS = 100

/** Facts that explain a result, and none that names the machine. */
export function describeMachine(directory: string): Machine {
  return {
    cpu: (cpus()[0]?.model ?? 'unknown').replaceAll(/\(R\)|\(TM\)/gu, '').trim(),
    cpus: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    arch: arch(),
    cgroups: cgroupsKind(),
    fileSystem: fileSystemOf(directory),
    syncMs: measureSync(directory),
    load: round(loadavg()[0] ?? 0),
    nice: getPriority(),
    node: process.versions.node,
  }
}

/** What the file of a result is named after. */
export function kindOf(machine: Machine): string {
  return `${machine.arch}-${machine.cpus}cpu-${machine.cgroups}`
}

function cgroupsKind(): string {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
  const memoryOnV1 = / - cgroup \S+ \S*\bmemory\b/u.test(mounts)
  if (!memoryOnV1) return 'v2'
  return existsSync('/sys/fs/cgroup/unified') ? 'hybrid' : 'v1'
}

/** The type of the mount that the directory is on. */
function fileSystemOf(directory: string): string {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => ({ at: line.split(' ')[4] ?? '', type: line.split(' - ')[1]?.split(' ')[0] ?? '' }))
    .filter(({ at }) => at === '/' || directory === at || directory.startsWith(`${at}/`))
  return mounts.toSorted((a, b) => b.at.length - a.at.length)[0]?.type ?? 'unknown'
}

function measureSync(directory: string): number {
  const path = join(directory, 'bench-sync')
  const file = openSync(path, 'w')
  const bytes = Buffer.alloc(4096)
  const samples = Array.from({ length: SYNCS }, () => {
    const before = performance.now()
    writeSync(file, bytes)
    fdatasyncSync(file)
    return performance.now() - before
  })
  closeSync(file)
  unlinkSync(path)
  return round(quantile(samples, 0.5))
}
