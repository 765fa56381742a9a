import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Vault, type VaultOptions } from './vault.ts'

describe('the vault', () => {
  let root: string
  let nowMs: number
  const vaults: Vault[] = []
  const dir = () => join(root, 'vault')
  const open = async (options: Partial<VaultOptions> = {}): Promise<Vault> => {
    const log = createLog({ process: 'test', level: 'silent', write: () => {} })
    const clock = { now: () => nowMs }
    const bounds = { retentionMs: 1000, maxBytes: 100, hasRoom: () => true }
    const vault = await Vault.open({ dir: dir(), clock, log, ...bounds, ...options })
    vaults.push(vault)
    return vault
  }
  const file = (text: string): string => {
    const path = join(root, 'written')
    writeFileSync(path, text)
    return path
  }
  const textOf = async (vault: Vault, id: string): Promise<string | undefined> => {
    const read = await vault.read(id)
    return read && Buffer.concat(await Array.fromAsync(read.bytes)).toString()
  }

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'airlock-vault-'))
    nowMs = Date.now()
  })
  afterEach(() => {
    for (const vault of vaults.splice(0)) vault.close()
    rmSync(root, { recursive: true })
  })

  it('keeps the bytes of a file, which is gone from where it was', async () => {
    const vault = await open()
    const path = file('all of it')
    expect(await vault.take('acme', 'cmd_one', path)).toEqual({ id: 'cmd_one', tenant: 'acme', bytes: 9, at: nowMs })
    expect(existsSync(path)).toBe(false)
    expect(await textOf(vault, 'cmd_one')).toBe('all of it')
    expect(await vault.read('cmd_two')).toBeUndefined()
  })

  it('finds again what an earlier process kept, and leaves alone what is not its own', async () => {
    await (await open()).take('acme', 'cmd_one', file('one'))
    mkdirSync(join(dir(), 'not an id'))
    const next = await open()
    expect(next.list()).toMatchObject([{ id: 'cmd_one', bytes: 3 }])
    expect(await textOf(next, 'cmd_one')).toBe('one')
    expect(readdirSync(dir()).toSorted()).toEqual(['acme', 'not an id'])
  })

  it('removes the oldest when there is too much, and takes nothing larger than all of it', async () => {
    const vault = await open({ maxBytes: 10 })
    for (const id of ['cmd_one', 'cmd_two', 'cmd_three']) await vault.take('acme', id, file('12345'))
    expect(vault.list().map(({ id }) => id)).toEqual(['cmd_two', 'cmd_three'])
    expect(await vault.take('acme', 'cmd_large', file('12345678901'))).toBeUndefined()
    expect(readdirSync(join(dir(), 'acme')).toSorted()).toEqual(['cmd_three', 'cmd_two'])
  })

  it('takes what is too much from whoever has the most, however old what others have is', async () => {
    const vault = await open({ maxBytes: 20 })
    await vault.take('acme', 'cmd_old', file('12345'))
    for (const id of ['cmd_one', 'cmd_two', 'cmd_three', 'cmd_four']) await vault.take('globex', id, file('12345'))
    expect(vault.list().map(({ id }) => id)).toEqual(['cmd_old', 'cmd_two', 'cmd_three', 'cmd_four'])
  })

  it('removes what is too old, also of an earlier process', async () => {
    const vault = await open()
    await vault.take('acme', 'cmd_old', file('old'))
    nowMs += 500
    await vault.take('acme', 'cmd_new', file('new'))
    nowMs += 501
    await vault.sweep()
    expect(vault.list().map(({ id }) => id)).toEqual(['cmd_new'])
    utimesSync(join(dir(), 'acme/cmd_new'), 1, 1)
    expect((await open()).list()).toEqual([])
    expect(readdirSync(join(dir(), 'acme'))).toEqual([])
  })

  it('reads to its end what is removed meanwhile', async () => {
    const vault = await open()
    await vault.take('acme', 'cmd_one', file('still there'))
    const read = await vault.read('cmd_one')
    await vault.remove('cmd_one')
    expect(Buffer.concat(await Array.fromAsync(read?.bytes ?? [])).toString()).toBe('still there')
    expect(vault.find('cmd_one')).toBeUndefined()
  })

  it('has no room where the disk has none, or it is to keep nothing', async () => {
    expect((await open()).hasRoom).toBe(true)
    expect((await open({ hasRoom: () => false })).hasRoom).toBe(false)
    expect((await open({ maxBytes: 0 })).hasRoom).toBe(false)
  })

  it('takes no name that is not an id', async () => {
    const vault = await open()
    expect(await vault.take('acme', '../escaped', file('x'))).toBeUndefined()
    expect(await vault.take('..', 'cmd_one', file('x'))).toBeUndefined()
    expect(existsSync(join(root, 'escaped'))).toBe(false)
  })
})
