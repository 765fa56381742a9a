import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findRuntime, findStrictRuntime } from './runtime.ts'

let directory: string

beforeAll(() => (directory = mkdtempSync(join(tmpdir(), 'al-runtime-'))))
afterAll(() => rmSync(directory, { recursive: true }))

/** A program that answers as a runtime does. */
function program(name: string, { version, flags = '' }: { version: string; flags?: string }): string {
  const path = join(directory, name)
  writeFileSync(path, `#!/bin/sh\ncase $1 in --version) echo '${version}';; flags) echo '${flags}';; esac\n`)
  chmodSync(path, 0o755)
  return path
}

describe('findStrictRuntime', () => {
  it('has none where none is wanted', async () => {
    expect(await findStrictRuntime('none')).toBeUndefined()
  })

  it('fails closed when the one that was named is not there, or is something else', async () => {
    const refused = { code: 'isolation_unavailable', message: expect.stringContaining('was not found or is none') }
    await expect(findStrictRuntime(join(directory, 'nothing'))).rejects.toMatchObject(refused)
    const other = program('other', { version: 'crun version 1.8.1' })
    await expect(findStrictRuntime(other)).rejects.toMatchObject(refused)
  })

  it('tells one that could open files itself to leave that to another process', async () => {
    const old = program('old', { version: 'runsc version 0.0~20221219.0', flags: '  -overlay2 value' })
    const young = program('young', { version: 'runsc version release-20240729.0', flags: '  -directfs' })
    expect([await findStrictRuntime(old), await findStrictRuntime(young)]).toEqual([
      { kind: 'runsc', path: old, version: '0.0~20221219.0', args: [] },
      { kind: 'runsc', path: young, version: 'release-20240729.0', args: ['--directfs=false'] },
    ])
  })
})

describe('findRuntime', () => {
  it('does not take gVisor for the standard tier', async () => {
    const runsc = program('runsc', { version: 'runsc version 0.0~20221219.0' })
    await expect(findRuntime(runsc)).rejects.toMatchObject({ code: 'isolation_unavailable' })
  })
})
