import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { requires } from '../../../test/support/requires.ts'

const CHILD = new URL('./child.ts', import.meta.url).href

let directory: string
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'airlock-compiled-'))))
afterEach(() => rmSync(directory, { recursive: true }))

describe('a process that gives up root', requires('root'), () => {
  it('leaves what Node compiled to the next start, in files that only root can write', () => {
    const code = `const { dropPrivileges } = await import('${CHILD}'); dropPrivileges({ uid: 65534, gid: 65534 }); console.log(process.getuid())`
    const env = { NODE_COMPILE_CACHE: directory }
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', code], { env, encoding: 'utf8' })
    const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    expect({ said, isEmpty: files.length === 0 }).toEqual({ said: '65534\n', isEmpty: false })
    const found = files.map(({ parentPath, name }) => statSync(join(parentPath, name)))
    expect(found.filter(({ uid, mode }) => uid !== 0 || (mode & 0o022) !== 0)).toEqual([])
  })
})
