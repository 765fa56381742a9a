import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  countArtifacts,
  deleteArtifact,
  findArtifact,
  insertArtifact,
  knownArtifacts,
  listArtifacts,
  listArtifactsOfTry,
  listDeadArtifacts,
  setArtifactReady,
  type StoredArtifact,
} from './artifacts.ts'
import { openStore, type Store } from './engine/store.ts'
import { insertTenantIfAbsent } from './tenants.ts'
import { DIALECTS, type TestStores } from './testing/dialects.ts'

const NOW = 1_000_000
const CONTENT = { sha256: 'f'.repeat(64), size: 3 }

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let store: Store
    let made = 0

    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => {
      store = await openStore(await stores.make())
      for (const id of ['acme', 'globex']) await store.query((db) => insertTenantIfAbsent(db, { id, createdAt: 1 }))
    })
    afterEach(async () => store.close())

    const add = async (more: Partial<StoredArtifact> = {}): Promise<StoredArtifact> => {
      const row = { ...ROW, id: `art_${String(++made).padStart(26, '0')}`, ...more }
      await store.transaction(async (db) => insertArtifact(db, row))
      return row
    }

    it('is found once its bytes are there, and not before', async () => {
      const row = await add({ state: 'writing', sha256: null, size: 10 })
      expect(await store.query((db) => findArtifact(db, row.id))).toBeUndefined()
      expect(await store.transaction(async (db) => setArtifactReady(db, row.id, CONTENT))).toBe(true)
      expect(await store.query((db) => findArtifact(db, row.id))).toEqual({ ...row, ...CONTENT, state: 'ready' })
      expect(await store.transaction(async (db) => setArtifactReady(db, row.id, CONTENT))).toBe(false)
      expect(await store.query((db) => deleteArtifact(db, row.id))).toBe(true)
      expect(await store.query((db) => deleteArtifact(db, row.id))).toBe(false)
    })

    it('counts for its tenant while it is written, too', async () => {
      await add({ size: 5 })
      await add({ state: 'writing', size: 7 })
      await add({ tenant: 'globex', size: 100 })
      expect(await store.query((db) => countArtifacts(db, 'acme'))).toEqual({ count: 2, bytes: 12 })
    })

    it('is listed by its owner and source, newest first', async () => {
      const [a, b] = [await add({ job: 'job_1', attempt: 1 }), await add({ agent: 'b', name: 'other' })]
      await add({ tenant: 'globex' })
      await add({ state: 'writing' })
      const list = async (more: object) => {
        const filter = { tenant: 'acme', agents: null, limit: 10, ...more }
        return (await store.query((db) => listArtifacts(db, filter))).map(({ id }) => id)
      }
      expect(await list({})).toEqual([b.id, a.id])
      expect(await list({ agents: ['b'] })).toEqual([b.id])
      expect(await list({ agents: [] })).toEqual([])
      expect([await list({ job: 'job_1' }), await list({ name: 'other' })]).toEqual([[a.id], [b.id]])
      expect(await list({ before: b.id })).toEqual([a.id])
      const ofTry = await store.query((db) => listArtifactsOfTry(db, { job: 'job_1', attempt: 1 }))
      expect(ofTry.map(({ id }) => id)).toEqual([a.id])
    })

    it('is dead on its own node when it has expired, or was left half written', async () => {
      const expired = await add({ expiresAt: NOW })
      const half = await add({ state: 'writing', createdAt: NOW - 1 })
      await add({ expiresAt: NOW, node: 'there' })
      const alive = await add()
      const asked = { node: 'here', now: NOW, writtenBefore: NOW, limit: 10 }
      const dead = (await store.query((db) => listDeadArtifacts(db, asked))).map(({ id }) => id)
      expect(dead.toSorted()).toEqual([expired.id, half.id])
      const ids = [alive.id, half.id, 'art_unknown']
      expect(await store.query((db) => knownArtifacts(db, { node: 'here', ids }))).toEqual(new Set([alive.id, half.id]))
    })
  })

const ROW: StoredArtifact = {
  id: '',
  tenant: 'acme',
  agent: 'a',
  node: 'here',
  state: 'ready',
  name: 'out/x.csv',
  size: 3,
  sha256: 'a'.repeat(64),
  mediaType: 'text/csv',
  sandbox: null,
  command: null,
  step: null,
  job: null,
  attempt: null,
  provenance: { image: null, template: 'base', runtime: 'crun', tier: 'standard', codeSha256: null },
  createdBy: 'key:x',
  createdAt: NOW,
  expiresAt: NOW + 1,
}
