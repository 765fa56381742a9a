import { writeSync } from 'node:fs'
import { openStore } from '../engine/store.ts'
import { insertTenantIfAbsent } from '../tenants.ts'

/** For tests only, as a process of its own: says on stdout when each commit is done. */
const store = await openStore({ file: process.argv[2] ?? '' })
writeSync(1, 'opened\n')
await store.transaction((db) => insertTenantIfAbsent(db, { id: 'first', createdAt: 1 }))
writeSync(1, 'first\n')
await store.query((db) => insertTenantIfAbsent(db, { id: 'second', createdAt: 1 }))
writeSync(1, 'second\n')
await store.close()
