import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { requires } from '../../../../test/support/requires.ts'
import { DoorDirectories } from './door-directories.ts'

const UID = 42_420

let dir: string
let doors: DoorDirectories
let faults: string[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-door-directories-'))
  faults = []
  const log = createLog({ process: 'data-plane', level: 'info', write: (line) => void faults.push(line) })
  doors = new DoorDirectories({ dir: join(dir, 'doors'), uid: UID, log })
})
afterEach(() => rmSync(dir, { recursive: true }))

describe('the directories of doors', requires('root'), () => {
  it('belong to the doors at the last level, and to root above', async () => {
    expect(await doors.make('one', ['control'])).toEqual([{ name: 'control', source: join(dir, 'doors/one/control') }])
    const look = (path: string) => {
      const { uid, mode } = statSync(join(dir, path))
      return `${uid} ${(mode & 0o777).toString(8)}`
    }
    expect([look('doors/one'), look('doors/one/control')]).toEqual(['0 711', `${UID} 755`])
  })

  it('are none where a sandbox has no door', async () => {
    expect(await doors.make('one', [])).toEqual([])
    expect(existsSync(join(dir, 'doors/one'))).toBe(false)
  })

  it('go with their sockets, as often as they are asked to', async () => {
    await doors.make('one', ['control'])
    writeFileSync(join(dir, 'doors/one/control/airlock.sock'), '')
    for (const _ of [1, 2]) await doors.remove('one')
    expect(existsSync(join(dir, 'doors/one'))).toBe(false)
  })

  it('are removed by name: what was planted there is neither followed nor walked', async () => {
    await doors.make('one', ['control'])
    writeFileSync(join(dir, 'precious'), 'x')
    symlinkSync(join(dir, 'precious'), join(dir, 'doors/one/control/airlock.sock'))
    await doors.remove('one')
    expect(existsSync(join(dir, 'precious'))).toBe(true)
    await doors.make('two', ['control'])
    mkdirSync(join(dir, 'doors/two/control/tree'))
    await doors.remove('two')
    expect(faults.join('')).toContain('ENOTEMPTY')
    expect(existsSync(join(dir, 'doors/two/control/tree'))).toBe(true)
  })

  it('of sandboxes that are no more go after a crash, and the others stay', async () => {
    for (const sandbox of ['one', 'two']) await doors.make(sandbox, ['control'])
    await doors.removeAllBut(new Set(['two']))
    expect([existsSync(join(dir, 'doors/one')), existsSync(join(dir, 'doors/two'))]).toEqual([false, true])
  })
})
