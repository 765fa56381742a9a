import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { writeAllOrNone } from './change-limits.ts'
import { GroupsV2 } from './v2.ts'

const MIB = 1024 * 1024
/** As the files of a kernel are: none of these values is longer than the one before. */
const BEFORE = {
  'memory.max': `${512 * MIB}`,
  'memory.swap.max': '0',
  'memory.oom.group': '0',
  'memory.current': `${100 * MIB}`,
  'memory.reclaim': ' '.repeat(20),
  'pids.max': '256',
  'cpu.max': '100000 100000',
}

let root = ''
let user = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'airlock-groups-'))
  user = join(root, 'airlock', 'sbx_a', 'user')
  mkdirSync(user, { recursive: true })
  for (const [name, value] of Object.entries(BEFORE)) writeFileSync(join(user, name), value)
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const read = (name: keyof typeof BEFORE) => readFileSync(join(user, name), 'utf8')
const limits = () => ({ memory: read('memory.max'), pids: read('pids.max'), cpu: read('cpu.max') })

describe('limits of version 2', () => {
  const groups = () => new GroupsV2({ root, mountPoint: root }, 'airlock')

  it('are all written', async () => {
    await groups().change('sbx_a', { memoryBytes: 256 * MIB, pids: 100, cpus: 2 })
    expect(limits()).toEqual({ memory: `${256 * MIB}`, pids: '100', cpu: '200000 100000' })
  })

  it('stay as they are where more memory is used than the new one, and cannot be had back', async () => {
    const lower = { memoryBytes: 99 * MIB, pids: 100, cpus: 2 }
    await expect(groups().change('sbx_a', lower)).rejects.toMatchObject({ code: 'limit_in_use' })
    expect(read('memory.reclaim').trim()).toBe(`${MIB}`)
    expect(limits()).toEqual({ memory: BEFORE['memory.max'], pids: '256', cpu: BEFORE['cpu.max'] })
  })

  it('are of nobody where the group is gone', async () => {
    await expect(groups().change('sbx_b', { memoryBytes: MIB, pids: 1, cpus: 1 })).rejects.toMatchObject({
      code: 'sandbox_ended',
    })
  })
})

describe('writing all or none', () => {
  it('takes back what it wrote, newest first, when one cannot be written', async () => {
    mkdirSync(join(user, 'no-file'))
    const writes = [
      [join(user, 'pids.max'), '100'],
      [join(user, 'cpu.max'), '200000 100000'],
      [join(user, 'pids.max'), '300'],
      [join(user, 'no-file'), '1'],
    ] as const
    await expect(writeAllOrNone(writes)).rejects.toMatchObject({ code: 'EISDIR' })
    expect(limits()).toEqual({ memory: BEFORE['memory.max'], pids: '256', cpu: BEFORE['cpu.max'] })
  })
})
