import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { compileSeccomp, readSeccompProfile } from '../../packages/data-plane/src/isolation/backends/oci/seccomp.ts'
import { neededCapabilities } from '../../packages/data-plane/src/isolation/backends/oci/rights.ts'
import { ROOT } from './repository.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const compose = read('deploy/server/compose.yaml')
const capabilities = (/cap_add: \[(.*)\]/.exec(compose)?.[1] ?? '').split(', ')

describe('the server image', () => {
  it('installs what a server needs from the system', () => {
    const table = /const NEEDED[^=]*= \[(.*?)\n\]/s.exec(read('scripts/system-packages.ts'))?.[1] ?? ''
    const needed = [...table.matchAll(/name: '([^']+)'/g)].map((match) => match[1] ?? '')
    const installed =
      /--no-install-recommends \\\n([^\\]*)/.exec(read('deploy/server/Dockerfile'))?.[1]?.split(/\s+/) ?? []
    expect(needed.length).toBeGreaterThan(0)
    expect(needed.filter((name) => !installed.includes(name))).toEqual([])
  })

  it('allows every system call that sandboxes are allowed, for filters add up', () => {
    const profile: { syscalls: readonly { names: readonly string[] }[] } = JSON.parse(
      read('deploy/server/seccomp.json'),
    )
    const outside = new Set(profile.syscalls.flatMap(({ names }) => names))
    const inside = compileSeccomp(readSeccompProfile(), 'x64').syscalls.flatMap(({ names }) => names)
    expect([...new Set(inside)].filter((name) => !outside.has(name))).toEqual([])
  })

  it('is given the capabilities that the backend asks for, and one more for nodes of devices', () => {
    expect(capabilities.toSorted()).toEqual([...neededCapabilities(), 'MKNOD'].toSorted())
  })

  it('says of every capability what it is for', () => {
    const rows = read('docs/deploy.md')
      .split('\n')
      .filter((line) => /^\| `[A-Z]/.test(line))
    const explained = rows
      .flatMap((row) => (row.split('|')[1] ?? '').split(','))
      .map((name) => name.trim().slice(1, -1))
    expect(explained.toSorted()).toEqual(capabilities.toSorted())
    expect([...read('docs/deploy.md').matchAll(/--cap-add (\w+)/g)].map((match) => match[1])).toEqual(capabilities)
  })
})
