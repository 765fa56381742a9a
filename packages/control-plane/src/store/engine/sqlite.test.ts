import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openStore, type Store } from './store.ts'
import { insertTenantIfAbsent, listTenants } from '../tenants.ts'

let dir: string
let store: Store
let other: DatabaseSync
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-sqlite-'))
  store = await openStore({ file: join(dir, 'airlock.db') })
  other = new DatabaseSync(join(dir, 'airlock.db'))
})
afterEach(async () => {
  other.close()
  await store.close()
  rmSync(dir, { recursive: true, force: true })
})

const insert = () => store.transaction((db) => insertTenantIfAbsent(db, { id: 'one', createdAt: 1 }))

it.each(['empty', 'cut in half', 'NULs'])('a file that is %s is not opened as a new store', async (how) => {
  await insert()
  await store.close()
  other.close()
  const file = join(dir, 'airlock.db')
  const { size } = statSync(file)
  if (how === 'NULs') writeFileSync(file, Buffer.alloc(size))
  else truncateSync(file, how === 'empty' ? 0 : size / 2)
  await expect(openStore({ file, hasRun: true })).rejects.toMatchObject({
    code: 'state_damaged',
    message: expect.stringContaining(`${file} is damaged`),
    hint: expect.stringContaining('from a backup'),
  })
  rmSync(file)
  store = await openStore({ file, hasRun: true })
  other = new DatabaseSync(file)
})

it('a start that was broken off before the first table begins anew', async () => {
  await store.close()
  other.close()
  const file = join(dir, 'airlock.db')
  truncateSync(file, 0)
  store = await openStore({ file, hasRun: false })
  other = new DatabaseSync(file)
})

it('tries again when another holds the lock', async () => {
  other.exec('begin immediate')
  setTimeout(() => other.exec('commit'), 150)
  await insert()
  expect(await store.query(listTenants)).toEqual(['one'])
})

it('says that the store is not available when the lock is never let go', async () => {
  other.exec('begin immediate')
  await expect(insert()).rejects.toMatchObject({ code: 'store_unavailable' })
  other.exec('commit')
  expect(await store.query(listTenants)).toEqual([])
})
