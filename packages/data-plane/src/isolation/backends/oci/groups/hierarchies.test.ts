import { describe, expect, it } from 'vitest'
import { kindOf, parseHierarchies } from './hierarchies.ts'

const V2 = '30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate'
const SHARED = '33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct'
const MEMORY = '34 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory'
const AGAIN = '54 31 0:32 / /mnt/memory\\040too rw - cgroup cgroup rw,memory'
const BESIDE = '41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw'
const OTHER = '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw'

const parse = (...lines: readonly string[]) => parseHierarchies(lines.join('\n'), () => ['memory', 'pids'])

describe('parseHierarchies', () => {
  it('finds version 2 with what its root offers', () => {
    const found = parse(OTHER, V2)
    expect(found).toEqual([{ version: 2, mountPoint: '/sys/fs/cgroup', controllers: ['memory', 'pids'] }])
    expect(kindOf(found)).toBe('v2')
  })

  it('finds controllers that share a hierarchy, and each hierarchy once', () => {
    const found = parse(OTHER, SHARED, MEMORY, AGAIN)
    expect(found).toEqual([
      { version: 1, mountPoint: '/sys/fs/cgroup/cpu,cpuacct', controllers: ['cpu', 'cpuacct'] },
      { version: 1, mountPoint: '/sys/fs/cgroup/memory', controllers: ['memory'] },
    ])
    expect(kindOf(found)).toBe('v1')
  })

  it('calls it hybrid when version 2 is only beside version 1', () => {
    expect(kindOf(parse(MEMORY, BESIDE))).toBe('hybrid')
  })

  it('reads blanks in mount points', () => {
    expect(parse(AGAIN)).toEqual([{ version: 1, mountPoint: '/mnt/memory too', controllers: ['memory'] }])
  })

  it('finds nothing where nothing is mounted', () => {
    expect(kindOf(parse(OTHER))).toBeUndefined()
  })
})
