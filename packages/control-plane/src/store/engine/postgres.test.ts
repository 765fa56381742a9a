import { once } from 'node:events'
import { createServer } from 'node:net'
import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestPostgres } from '../../../../../test/support/postgres.ts'
import { requires } from '../../../../../test/support/requires.ts'
import { openStore, type Store } from './store.ts'
import { LosingProxy } from '../testing/losing-proxy.ts'
import { insertTenantIfAbsent, listTenants } from '../tenants.ts'

const tenant = (id: string) => ({ id, createdAt: 1 })

describe('PostgreSQL', requires('postgres'), () => {
  let postgres: TestPostgres
  let url: string
  let store: Store
  beforeAll(async () => (postgres = await TestPostgres.start()))
  beforeEach(async () => {
    url = await postgres.createDatabase()
    store = await openStore({ url })
  })
  afterEach(async () => store.close())
  afterAll(async () => postgres?.stop())

  const insert = (id: string) => store.transaction((db) => insertTenantIfAbsent(db, tenant(id)))
  const tenants = () => store.query(listTenants)

  /** Fails the first inserts of tenants with this code; a sequence counts also what is taken back. */
  async function failFirst(times: number, code: string): Promise<void> {
    const body = `begin if nextval('tries') <= ${times} then raise exception 'no' using errcode = '${code}'; end if; return new; end`
    await postgres.ask(url, 'create sequence tries')
    await postgres.ask(url, `create function fail() returns trigger language plpgsql as $$ ${body} $$`)
    await postgres.ask(url, 'create trigger fail before insert on tenants for each row execute function fail()')
  }

  it('gets its schema once when several control planes start at the same time', async () => {
    const other = await postgres.createDatabase()
    const opened = await Promise.all(Array.from({ length: 4 }, async () => openStore({ url: other })))
    expect(await Promise.all(opened.map((one) => one.query(listTenants)))).toEqual([[], [], [], []])
    await Promise.all(opened.map((one) => one.close()))
    expect(await postgres.ask(other, 'select name from kysely_migration order by name')).toEqual(
      await postgres.ask(url, 'select name from kysely_migration order by name'),
    )
  })

  it.each([
    ['serialization failure', '40001'],
    ['deadlock', '40P01'],
    ['lock that is not free', '55P03'],
    ['shutdown by an administrator', '57P01'],
    ['lack of connections', '53300'],
    ['broken connection', '08006'],
  ])('tries again after a %s', async (_what, code) => {
    await failFirst(3, code)
    await insert('one')
    expect([await tenants(), await postgres.ask(url, 'select last_value from tries')]).toEqual([['one'], ['4']])
  })

  it('gives up after a bounded number of tries, and says that the store is not available', async () => {
    await failFirst(1_000_000, '40001')
    await expect(insert('one')).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(await tenants()).toEqual([])
  })

  it('says so at once when its disk is full', async () => {
    await failFirst(1, '53100')
    await expect(insert('one')).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  it('goes on when its connections are ended in the middle of transactions', async () => {
    let ended = false
    await store.transaction(async (db) => {
      await insertTenantIfAbsent(db, tenant('one'))
      if (ended) return
      ended = true
      const others = 'pid <> pg_backend_pid() and datname = current_database()'
      await postgres.ask(url, `select pg_terminate_backend(pid) from pg_stat_activity where ${others}`)
    })
    expect(await tenants()).toEqual(['one'])
  })

  describe('on a connection that breaks after a commit', () => {
    let proxy: LosingProxy
    let behind: Store
    beforeEach(async () => {
      proxy = await LosingProxy.start(url)
      behind = await openStore({ url: proxy.url })
    })
    afterEach(async () => {
      await behind.close()
      await proxy.stop()
    })

    it('commits a transaction once, and answers what that try found', async () => {
      let tries = 0
      proxy.toLose = 1
      const answer = await behind.transaction(async (db) => {
        tries++
        const before = (await listTenants(db)).length
        await insertTenantIfAbsent(db, tenant(`${tries}`))
        return before
      })
      expect([answer, tries, proxy.lost, await tenants()]).toEqual([0, 1, 1, ['1']])
    })

    it('asks as often as the answer is lost', async () => {
      let tries = 0
      proxy.toLose = 3
      await behind.transaction((db) => insertTenantIfAbsent(db, tenant(`${++tries}`)))
      expect([tries, proxy.lost, await tenants()]).toEqual([1, 3, ['1']])
    })

    it('runs the work again when it was not committed', async () => {
      let tries = 0
      await behind.transaction(async (db) => {
        await insertTenantIfAbsent(db, tenant(`${++tries}`))
        if (tries > 1) return
        const others = 'pid <> pg_backend_pid() and datname = current_database()'
        await postgres.ask(url, `select pg_terminate_backend(pid) from pg_stat_activity where ${others}`)
      })
      expect([tries, await tenants()]).toEqual([2, ['2']])
    })
  })

  it('goes on after it was shut down or killed, and started again', async () => {
    await insert('one')
    for (const end of [() => postgres.shutDown(), () => postgres.kill9()]) {
      await end()
      await expect(insert('two')).rejects.toMatchObject({ code: 'store_unavailable' })
      await postgres.restart()
      await insert('three')
    }
    expect(await tenants()).toEqual(['one', 'three'])
  })

  it('is waited for while it starts', async () => {
    await postgres.shutDown()
    const inserted = insert('one')
    await postgres.restart()
    await inserted
    expect(await tenants()).toEqual(['one'])
  })

  it('holds whole numbers beyond 32 bits', async () => {
    await store.query((db) => insertTenantIfAbsent(db, { id: 'one', createdAt: Number.MAX_SAFE_INTEGER }))
    const rows = await store.query((db) => db.selectFrom('tenants').selectAll().execute())
    expect(rows).toEqual([{ id: 'one', createdAt: Number.MAX_SAFE_INTEGER }])
  })

  it.each([
    ['the password is wrong', (good: string) => good.replace(':secret-of-postgres@', ':wrong-password@')],
    ['there is no such database', (good: string) => `${good}_not`],
    ['nobody listens', (good: string) => good.replace(/:\d+\//, ':1/')],
    ['the URL is none', () => 'postgres://airlock:secret-of-postgres@[half/x'],
    ['it must be encrypted and is not', (good: string) => `${good}?sslmode=verify-full`],
  ])('is refused without a word of the password when %s', async (_what, spoil) => {
    const refused = await openStore({ url: spoil(url) }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: expect.stringMatching(/^(?:store_unavailable|internal)$/) })
    expect(inspect(refused, { depth: 10, showHidden: true })).not.toMatch(/secret-of-postgres|wrong-password/)
  })

  it('does not wait for ever for a server that says nothing', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const address = silent.address()
    const port = typeof address === 'object' ? address?.port : 0
    await expect(openStore({ url: `postgres://a:b@127.0.0.1:${port}/c` })).rejects.toMatchObject({
      code: 'store_unavailable',
    })
    silent.close()
  })
})
