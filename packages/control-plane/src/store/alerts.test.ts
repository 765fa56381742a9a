import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { aRow } from '../monitor/testing/observed.ts'
import { insertAgentIfAbsent } from './agents.ts'
import {
  clearAlert,
  countAlerts,
  countAlertsOf,
  countAlertsOfLiving,
  insertAlert,
  listOpenAlerts,
  pruneAlerts,
  type StoredAlert,
} from './alerts.ts'
import { insertSandbox } from './sandboxes.ts'
import { openStore, type Store } from './engine/store.ts'
import { insertTenantIfAbsent } from './tenants.ts'
import { ALL_DIALECTS, type TestStores } from './testing/dialects.ts'

const AGENT = {
  tenant: 'default',
  id: 'default',
  state: 'idle',
  generation: 1,
  approved: true,
  version: null,
  labels: {},
  metadata: {},
  owner: 'key:x',
  createdAt: 1,
  updatedAt: 1,
  lastSeenAt: null,
  deletedAt: null,
} as const

const ALERT: StoredAlert = {
  id: 'alr_1',
  tenant: 'default',
  agent: 'default',
  sandbox: 'sbx_1',
  resource: 'memory',
  level: 'warning',
  percent: 80.5,
  threshold: 80,
  raisedAt: 100,
  clearedAt: null,
}

for (const dialect of ALL_DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let store: Store

    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => {
      store = await openStore(await stores.make())
      await store.transaction(async (db) => {
        await insertTenantIfAbsent(db, { id: 'default', createdAt: 1 })
        await insertAgentIfAbsent(db, AGENT)
        await insertSandbox(db, aRow())
        await insertSandbox(db, { ...aRow({ state: 'stopped' }), id: 'sbx_ended' })
        await insertSandbox(db, { ...aRow(), id: 'sbx_there', node: 'there' })
        await insertAlert(db, ALERT)
        await insertAlert(db, { ...ALERT, id: 'alr_2', level: 'critical', percent: 99.9, threshold: 95, raisedAt: 200 })
        await insertAlert(db, { ...ALERT, id: 'alr_3', sandbox: 'sbx_ended' })
        await insertAlert(db, { ...ALERT, id: 'alr_4', sandbox: 'sbx_there', agent: 'other' })
      })
    })
    afterEach(async () => store.close())

    const open = async () => (await store.query((db) => listOpenAlerts(db, 'here'))).map(({ id }) => id)

    it('shows what is open on a node, as it was written, until it is cleared', async () => {
      const [first] = await store.query((db) => listOpenAlerts(db, 'here'))
      expect(first).toEqual(ALERT)
      expect(await open()).toEqual(['alr_1', 'alr_2', 'alr_3'])
      await store.query((db) => clearAlert(db, 'alr_1', 300))
      await store.query((db) => clearAlert(db, 'alr_1', 999))
      expect(await open()).toEqual(['alr_2', 'alr_3'])
      // Written again by a try whose answer was lost.
      await store.query((db) => insertAlert(db, ALERT))
      expect(await open()).toEqual(['alr_2', 'alr_3'])
    })

    it('counts what was raised by sandbox, agent and tenant', async () => {
      const of = (agent: string | null, since: number) =>
        store.query((db) => countAlerts(db, { tenant: 'default', agent, since }))
      expect(await store.query((db) => countAlertsOfLiving(db, 'here'))).toEqual(
        new Map([['sbx_1', { warning: 1, critical: 1 }]]),
      )
      expect(await store.query((db) => countAlertsOf(db, 'sbx_ended'))).toEqual({ warning: 1, critical: 0 })
      expect([await of('default', 0), await of('default', 101), await of(null, 0), await of('none', 0)]).toEqual([
        { warning: 2, critical: 1 },
        { warning: 0, critical: 1 },
        { warning: 3, critical: 1 },
        { warning: 0, critical: 0 },
      ])
    })

    it('forgets what was cleared long ago, and nothing that is open', async () => {
      await store.query((db) => clearAlert(db, 'alr_1', 300))
      await store.query((db) => clearAlert(db, 'alr_2', 500))
      await store.query((db) => pruneAlerts(db, 400))
      expect(await store.query((db) => countAlertsOf(db, 'sbx_1'))).toEqual({ warning: 0, critical: 1 })
      expect(await open()).toEqual(['alr_3'])
    })
  })
