import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ProcFiles, procFiles } from './proc-files.ts'

const MIB = 1024 * 1024
const x64 = (at: number) => `processor\t: ${at}\nmodel name\t: x\nsiblings\t: 4\ncpu cores\t: 4\nflags\t\t: a b`
const HOST = { cpuinfo: [0, 1, 2, 3].map((at) => `${x64(at)}\n\n`).join(''), processors: 4, bootedAt: 1_700_000_000 }

it('say the memory and the processors of the sandbox, rounded up', () => {
  const { cpuinfo, meminfo, stat } = procFiles({ memoryBytes: 512 * MIB, cpus: 1.5 }, HOST)
  expect(meminfo).toMatch(/^MemTotal: +524288 kB\nMemFree: +524288 kB\nMemAvailable: +524288 kB\nBuffers: +0 kB\n/)
  expect(stat.match(/^cpu\d* /gm)).toEqual(['cpu ', 'cpu0 ', 'cpu1 '])
  expect(stat).toContain('\nbtime 1700000000\n')
  expect(cpuinfo.match(/^(?:processor|siblings|cpu cores)\s*: \d+$/gm)).toEqual(
    ['processor\t: 0', 'siblings\t: 2', 'cpu cores\t: 2'].concat(['processor\t: 1', 'siblings\t: 2', 'cpu cores\t: 2']),
  )
})

it('say no more processors than the host has, and at least one', () => {
  const count = (cpus: number) => procFiles({ memoryBytes: MIB, cpus }, HOST).stat.match(/^cpu\d /gm)?.length
  expect([0.1, 4, 64].map(count)).toEqual([1, 4, 4])
})

it('keep what is no processor of another architecture', () => {
  const arm = { ...HOST, cpuinfo: 'processor\t: 0\n\nprocessor\t: 1\n\nHardware\t: board\n' }
  expect(procFiles({ memoryBytes: MIB, cpus: 1 }, arm).cpuinfo).toMatch(/^processor\t: 0\n\nHardware\t: board\n/)
})

it('can be read inside, whatever the umask of the process is', () => {
  const dir = mkdtempSync(join(tmpdir(), 'al-proc-'))
  const before = process.umask(0o077)
  try {
    new ProcFiles().make(join(dir, 'proc'), { memoryBytes: MIB, cpus: 1 })
    const modes = ['', 'stat', 'meminfo', 'cpuinfo'].map((name) => statSync(join(dir, 'proc', name)).mode & 0o777)
    expect(modes).toEqual([0o755, 0o644, 0o644, 0o644])
  } finally {
    process.umask(before)
    rmSync(dir, { recursive: true })
  }
})

it('change in place, and a sandbox without any gets none', () => {
  const dir = mkdtempSync(join(tmpdir(), 'al-proc-'))
  try {
    const files = new ProcFiles()
    const inode = () => statSync(join(dir, 'proc/meminfo')).ino
    files.make(join(dir, 'proc'), { memoryBytes: 512 * MIB, cpus: 1 })
    const before = inode()
    files.change(join(dir, 'proc'), { memoryBytes: 64 * MIB, cpus: 1 })
    expect(readFileSync(join(dir, 'proc/meminfo'), 'utf8')).toMatch(/^MemTotal: +65536 kB\n/)
    expect(inode()).toBe(before)
    files.change(join(dir, 'absent'), { memoryBytes: 64 * MIB, cpus: 1 })
    expect(statSync(join(dir, 'absent'), { throwIfNoEntry: false })).toBeUndefined()
  } finally {
    rmSync(dir, { recursive: true })
  }
})
