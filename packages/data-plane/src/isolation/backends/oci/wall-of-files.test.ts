import { DEFAULTS } from '@airlock/contract'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { makeBoot } from './boot.ts'
import { makeBundle } from './bundle.ts'
import type { Mount } from './mounts.ts'
import { compileSeccomp, readSeccompProfile } from './seccomp.ts'
import { compareFiles } from './wall-of-files.ts'

const LIMITS = {
  memoryBytes: DEFAULTS.memoryBytes.default,
  cpus: DEFAULTS.cpus.default,
  pids: DEFAULTS.pids.default,
  diskBytes: DEFAULTS.diskBytes.default,
  inodes: DEFAULTS.inodes.min,
  openFiles: DEFAULTS.openFiles.default,
  cpuSeconds: null,
}

const bundle = makeBundle({
  boot: makeBoot(undefined, undefined, LIMITS),
  limits: LIMITS,
  uidRange: { first: 1_879_179_264, count: 65_536 },
  seccomp: compileSeccomp(readSeccompProfile()),
  compiledSeccomp: undefined,
  imageBinds: [{ source: '/usr', destination: '/usr' }],
  groupBinds: [{ source: '/sys/fs/cgroup/a', destination: '/run/guest/groups/pids' }],
  grants: [{ source: '/stage/0', destination: '/workspace/data', isWritable: true }],
  doors: ['control'],
  hasProcFiles: true,
  cgroupsPath: undefined,
  maxOpenFiles: 1024,
})
const asked = { bundle, writableGrants: ['/grants/notes'] }

/** As a runtime that does what it was told leaves them. */
const WHOLE: readonly Mount[] = [
  mount('/', 'ext4', 'ro'),
  ...bundle.mounts.map(({ destination, type, options }) =>
    mount(destination, type === 'bind' ? 'ext4' : type, ...options.filter((option) => /^(?:ro|no\w+)$/u.test(option))),
  ),
  mount('/dev/null', 'devtmpfs'),
  ...bundle.linux.maskedPaths.filter((path) => existsSync(path)).map((path) => mount(path, 'devtmpfs')),
  ...bundle.linux.readonlyPaths.map((path) => mount(path, 'proc', 'ro')),
]
const NOTHING = { root: 'read-only', unmasked: [], mountFaults: [] }

function mount(mountPoint: string, type: string, ...flags: readonly string[]): Mount {
  return { device: '8:1', mountPoint, type, flags: new Set(flags) }
}

describe('the files of a sandbox in the standard tier', () => {
  const without = (at: string) => WHOLE.filter(({ mountPoint }) => mountPoint !== at)

  it('are as they were asked for', () => {
    expect(compareFiles(WHOLE, asked, 'crun')).toEqual(NOTHING)
  })

  it.each([
    ['a writable root', [...WHOLE, mount('/', 'ext4', 'rw')], { root: 'writable' }],
    ['no root at all', without('/'), { root: 'writable' }],
    ['a path that is not masked', without('/proc/keys'), { unmasked: ['/proc/keys'] }],
    ['a mask of the file itself', [...WHOLE, mount('/proc/keys', 'proc', 'ro')], { unmasked: ['/proc/keys'] }],
    ['a writable /proc/sys', without('/proc/sys'), { mountFaults: ['/proc/sys is writable'] }],
    ["a file of /proc that is the host's", without('/proc/meminfo'), { mountFaults: ['no mount at /proc/meminfo'] }],
    ['a mount that is missing', without('/tmp'), { mountFaults: ['no mount at /tmp'] }],
    ['another file system', [...WHOLE, mount('/tmp', 'ext4', 'nosuid', 'nodev')], { mountFaults: ['ext4 at /tmp'] }],
    [
      'fewer flags',
      [...WHOLE, mount('/usr', 'ext4', 'ro'), mount('/dev/shm', 'tmpfs', 'nosuid', 'nodev')],
      { mountFaults: ['/usr without nosuid', '/usr without nodev', '/dev/shm without noexec'] },
    ],
    [
      'a bind that may be written',
      [...WHOLE, mount('/usr', 'ext4', 'rw', 'nosuid', 'nodev')],
      { mountFaults: ['/usr is writable'] },
    ],
    [
      'a mount too many',
      [...WHOLE, mount('/tmp/shared', 'ext4', 'ro', 'nosuid', 'nodev')],
      { mountFaults: ['a mount at /tmp/shared that nobody asked for'] },
    ],
    [
      'a device too many',
      [...WHOLE, mount('/dev/kmsg', 'devtmpfs')],
      { mountFaults: ['a mount at /dev/kmsg that nobody asked for'] },
    ],
    [
      'a writable mount below what is bound',
      [...WHOLE, mount('/usr/local', 'ext4', 'rw', 'nosuid', 'nodev')],
      { mountFaults: ['/usr/local is writable'] },
    ],
    [
      'a writable grant that was granted to be read',
      [...WHOLE, mount('/grants/other', 'ext4', 'rw', 'nosuid', 'nodev')],
      { mountFaults: ['/grants/other is writable'] },
    ],
  ])('show %s', (_what, found, difference) => {
    expect(compareFiles(found, asked, 'runc')).toEqual({ ...NOTHING, ...difference })
  })

  it('may have what was granted, for writing too, and read-only mounts of the host below what is bound', () => {
    const more = [
      mount('/grants', 'tmpfs', 'ro', 'nosuid', 'nodev'),
      mount('/grants/notes', 'ext4', 'rw', 'nosuid', 'nodev'),
      mount('/usr/local', 'ext4', 'ro', 'nosuid', 'nodev'),
    ]
    expect(compareFiles([...WHOLE, ...more], asked, 'crun')).toEqual(NOTHING)
  })
})

describe('the kernel of gVisor', () => {
  it('has an empty root, read-only, and no more than its own processes', () => {
    const found = [mount('/', 'tmpfs', 'ro'), mount('/proc', 'proc', 'rw')]
    expect(compareFiles(found, asked, 'runsc')).toEqual(NOTHING)
  })

  it('is seen to have more, or to be able to write', () => {
    const found = [mount('/', 'tmpfs', 'rw'), mount('/usr', 'ext4', 'ro')]
    expect(compareFiles(found, asked, 'runsc')).toEqual({
      ...NOTHING,
      root: 'writable',
      mountFaults: ['a mount at /usr that nobody asked for'],
    })
  })
})
