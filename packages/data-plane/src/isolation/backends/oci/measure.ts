import type { EffectiveIsolation } from '@airlock/contract'
import { readFileSync, readlinkSync } from 'node:fs'
import { mountsOf } from './mounts.ts'
import type { RuntimeKind } from './runtime.ts'
import { compareFiles, type AskedFiles, type FileWall } from './wall-of-files.ts'

/** The namespaces of a sandbox, and what the kernel calls them in /proc. */
const NAMESPACES = {
  user: 'user',
  pid: 'pid',
  net: 'net',
  ipc: 'ipc',
  uts: 'uts',
  mount: 'mnt',
  cgroup: 'cgroup',
} as const

export type Measured = Pick<
  EffectiveIsolation,
  'namespaces' | 'network' | 'seccomp' | 'noNewPrivileges' | 'capabilities' | 'uidRange'
> &
  FileWall

/**
 * What the kernel says of the first process of a sandbox, whatever the runtime was told. Of gVisor that is its kernel, which
 * never starts another program: what it holds counts, not what one could gain.
 */
export function measureIsolation(pid: number, kind: RuntimeKind, asked: AskedFiles): Measured {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)`, 'mu').exec(status)?.[1]
  const own = (file: string) => readlinkSync(`/proc/${pid}/ns/${file}`) !== readlinkSync(`/proc/self/ns/${file}`)
  const [, first, count] = readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/\s+/u).map(Number)
  return {
    namespaces: Object.entries(NAMESPACES).flatMap(([name, file]) => (own(file) ? [name] : [])),
    network: own('net') && devicesOf(pid).every((name) => name === 'lo') ? 'none' : 'host',
    seccomp: field('Seccomp') === '2' ? 'allowlist' : 'none',
    noNewPrivileges: field('NoNewPrivs') === '1',
    capabilities: capabilitiesOf(BigInt(`0x${field(kind === 'runsc' ? 'CapPrm' : 'CapBnd') ?? 'ffffffffffffffff'}`)),
    uidRange: { first: first ?? 0, count: count ?? 0 },
    ...compareFiles(mountsOf(pid), asked, kind),
  }
}

/** Whether the process is the kernel of gVisor, which has become that after it filtered itself. Throws when it is gone. */
export function isSentry(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('runsc-sandbox\0') && /^Seccomp:\s*2$/mu.test(status)
}

/** Whether the runtime's child has become the first program of the sandbox, which has these words. Throws when it is gone. */
export function isInit(pid: number, args: readonly string[]): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`${args.join('\0')}\0`)
}

function devicesOf(pid: number): readonly string[] {
  const [, , ...lines] = readFileSync(`/proc/${pid}/net/dev`, 'utf8').trim().split('\n')
  return lines.map((line) => line.split(':')[0]?.trim() ?? '')
}

/** Those the guest or the kernel of gVisor is given, by name; any other by its number. */
const NAMES: Readonly<Record<number, string>> = {
  5: 'KILL',
  6: 'SETGID',
  7: 'SETUID',
  8: 'SETPCAP',
  18: 'SYS_CHROOT',
  19: 'SYS_PTRACE',
  21: 'SYS_ADMIN',
}

function capabilitiesOf(mask: bigint): string[] {
  const numbers = Array.from({ length: 64 }, (_, bit) => bit).filter((bit) => (mask >> BigInt(bit)) & 1n)
  return numbers.map((bit) => NAMES[bit] ?? `CAP_${bit}`)
}
