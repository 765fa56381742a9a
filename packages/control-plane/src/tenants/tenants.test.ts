import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { as, TestRegistry } from '../testing/registry.ts'

const PLATFORM = as({ tenant: 'globex', platform: true })

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let registry: TestRegistry
    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => (registry = await TestRegistry.open(await stores.make())))
    afterEach(async () => registry?.store.close())

    const tenants = () => registry.who.tenants

    it('a tenant begins with an approved agent, once, and both is evidence', async () => {
      const made = await tenants().create(PLATFORM, { id: 'initech' })
      expect(made).toEqual({ id: 'initech', createdAt: new Date(registry.now).toISOString() })
      await expect(tenants().create(PLATFORM, { id: 'initech' })).rejects.toMatchObject({ code: 'tenant_exists' })
      expect(registry.story()).toEqual(['tenant.create requested', 'tenant.create done', 'tenant.create denied'])
      const { items } = await registry.who.agents.list(as({ tenant: 'initech' }), { labels: {}, limit: 10 })
      expect(items.map(({ id, approved, state }) => [id, approved, state])).toEqual([['default', true, 'idle']])
    })

    it('of two who make the same one at once, one does', async () => {
      const both = [PLATFORM, PLATFORM].map(async (who) => tenants().create(who, { id: 'initech' }))
      const outcomes = await Promise.allSettled(both)
      expect(outcomes.map((one) => one.status).toSorted()).toEqual(['fulfilled', 'rejected'])
    })

    it('are seen by their own people and by the platform; to others they are not there', async () => {
      const own = as()
      expect((await tenants().list(own, { limit: 10 })).items.map((one) => one.id)).toEqual(['acme'])
      expect((await tenants().get(own, 'acme')).id).toBe('acme')
      for (const id of ['globex', 'nobody'])
        await expect(tenants().get(own, id)).rejects.toMatchObject({ code: 'tenant_not_found' })
      const first = await tenants().list(PLATFORM, { limit: 1 })
      expect([first.items.map((one) => one.id), first.nextCursor]).toEqual([['acme'], 'acme'])
      const next = await tenants().list(PLATFORM, { limit: 1, cursor: 'acme' })
      expect([next.items.map((one) => one.id), next.nextCursor]).toEqual([['globex'], null])
    })
  })
