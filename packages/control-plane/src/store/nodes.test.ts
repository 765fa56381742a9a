import { Kysely } from 'kysely'
import { Migrator } from 'kysely/migration'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { walk } from './migrations/0001-walk.ts'
import { nodes } from './migrations/0002-nodes.ts'
import { adoptRows } from './nodes.ts'
import { openPostgres } from './engine/postgres.ts'
import { openSqlite } from './engine/sqlite.ts'
import { openStore } from './engine/store.ts'
import { ALL_DIALECTS, type TestStores } from './testing/dialects.ts'

const HEAD = "'5', 'h', '{}', 1"

for (const dialect of ALL_DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())

    it('keeps what it held before nodes had names, up and down, and the next node adopts it', async () => {
      const place = await stores.make()
      const db = new Kysely<object>('file' in place ? openSqlite(place.file) : openPostgres(place.url, 'migration'))
      const provider = { getMigrations: async () => ({ '0001-walk': walk, '0002-nodes': nodes }) }
      const to = async (name: string) => {
        const { error } = await new Migrator({ db, provider }).migrateTo(name)
        expect(error).toBeUndefined()
      }
      const ask = (sql: string) => stores.run(place, sql)
      await to('0001-walk')
      await ask(`insert into audit_heads (tenant, seq, hash, head, stored_at) values ('a', ${HEAD})`)
      await to('0002-nodes')
      await to('0001-walk')
      await to('0002-nodes')
      await db.destroy()
      await ask("insert into tenants values ('a', 1)")
      const keys = ['developer', 'admin@old', 'other'].map((name) => `('${name}', 'h', 'a', 'admin', '${name}', 1)`)
      await ask(`insert into api_keys (id, hash, tenant, role, purpose, created_at) values ${keys.join(', ')}`)

      const store = await openStore(place)
      await store.transaction((queries) => adoptRows(queries, 'new'))
      await store.close()
      expect(await ask("select tenant || ' ' || node || ' ' || seq from audit_heads")).toEqual(['a new 5'])
      expect(await ask('select purpose from api_keys order by purpose')).toEqual([
        'admin@new',
        'developer@new',
        'other',
      ])
    })
  })
