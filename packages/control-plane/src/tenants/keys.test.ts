import { createKeyBody, type CreateKeyBody, type NewApiKey, rotateKeyBody } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { BearerAuthenticator } from '../identity/authenticate.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { as, TestRegistry } from '../testing/registry.ts'

const ADMIN = as()
const PLATFORM = as({ actor: 'key:platform', tenant: 'globex', platform: true })
const body = (more: object = {}) => createKeyBody.parse({ name: 'ci', role: 'developer', ...more })

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let registry: TestRegistry
    let authenticator: BearerAuthenticator
    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => {
      registry = await TestRegistry.open(await stores.make())
      const { store, keyUses, guardKeys } = registry
      const audit = { require: async () => {}, note: () => {}, flush: async () => {} }
      const clock = { now: () => registry.now }
      authenticator = new BearerAuthenticator({
        store,
        audit,
        clock,
        keyUses,
        guardKeys,
        tokens: null,
        onSeen: () => {},
      })
    })
    afterEach(async () => registry?.store.close())

    const keys = () => registry.who.keys
    const use = async (secret: string, purpose?: 'any' | 'reduce') =>
      authenticator
        .authenticate(`Bearer ${secret}`, 'req_1', purpose)
        .then((principal) => principal.role)
        .catch((error: unknown) => (error instanceof Error && 'code' in error ? error.code : error))

    it('are shown once, and never again in any answer or record', async () => {
      const { key, secret } = await keys().create(ADMIN, body({ agents: ['a'], expiresInMs: 60_000 }))
      expect(key).toEqual({
        id: secret.split('_')[1],
        tenant: 'acme',
        name: 'ci',
        role: 'developer',
        agents: ['a'],
        platform: false,
        createdAt: new Date(registry.now).toISOString(),
        createdBy: 'key:admin',
        expiresAt: new Date(registry.now + 60_000).toISOString(),
        revokedAt: null,
        lastUsedAt: null,
        replaces: null,
        person: null,
      })
      expect(await use(secret)).toBe('developer')
      const asked = { all: true, limit: 10 }
      const seen = JSON.stringify([await keys().list(ADMIN, asked), await keys().get(ADMIN, key.id), registry.records])
      expect(seen).not.toContain(secret.split('_')[2])
      expect(registry.story()).toEqual(['key.create requested', 'key.create done'])
    })

    it('name their person: the one given, else that of the key that made them, also after a rotation', async () => {
      const persons: (string | null)[] = []
      const show = async (made: Promise<NewApiKey>) => {
        const { key } = await made
        persons.push(key.person)
        return { ...ADMIN, principal: { ...ADMIN.principal, actor: `key:${key.id}` } }
      }
      await show(keys().create(ADMIN, body({})))
      const ann = await show(keys().create(ADMIN, body({ role: 'admin', person: 'ann@example.com' })))
      await show(keys().create(ann, body({})))
      await show(keys().create(ann, body({ person: 'bob' })))
      await show(keys().rotate(ADMIN, ann.principal.actor.slice('key:'.length), rotateKeyBody.parse({})))
      expect(persons).toEqual([null, 'ann@example.com', 'ann@example.com', 'bob', 'ann@example.com'])
    })

    it('end at their time', async () => {
      const { secret } = await keys().create(ADMIN, body({ expiresInMs: 1000 }))
      registry.now += 999
      expect(await use(secret)).toBe('developer')
      registry.now += 1
      expect(await use(secret)).toBe('unauthenticated')
    })

    it('that are rotated are both good for the overlap, then only the new one', async () => {
      const { key, secret } = await keys().create(ADMIN, body({ agents: ['a'] }))
      const next = await keys().rotate(ADMIN, key.id, rotateKeyBody.parse({ overlapMs: 1000 }))
      expect(next.key).toMatchObject({ tenant: 'acme', name: 'ci', role: 'developer', agents: ['a'], replaces: key.id })
      expect([await use(secret), await use(next.secret)]).toEqual(['developer', 'developer'])
      registry.now += 1000
      expect([await use(secret), await use(next.secret)]).toEqual(['unauthenticated', 'developer'])
      await expect(keys().rotate(ADMIN, key.id, rotateKeyBody.parse({}))).rejects.toMatchObject({ code: 'key_ended' })
    })

    it('keep their own end if it is earlier than the overlap', async () => {
      const { key, secret } = await keys().create(ADMIN, body({ expiresInMs: 1000 }))
      const next = await keys().rotate(ADMIN, key.id, rotateKeyBody.parse({ overlapMs: 5000 }))
      registry.now += 1000
      expect([await use(secret), await use(next.secret)]).toEqual(['unauthenticated', 'unauthenticated'])
    })

    it('of who may kill are known while the store is away, for what takes power away and nothing else', async () => {
      const make = async (of: Partial<CreateKeyBody>) => (await keys().create(ADMIN, body(of))).secret
      const [admin, operator] = [await make({ role: 'admin' }), await make({ role: 'operator' })]
      const others = [
        await make({ role: 'developer' }),
        await make({ role: 'operator', agents: ['a'] }),
        await make({ role: 'admin', expiresInMs: 1_000 }),
      ]
      const revoked = await keys().create(ADMIN, body({ role: 'admin' }))
      await registry.guardKeys.refresh()
      const unread = await make({ role: 'admin' })
      await keys().revoke(ADMIN, revoked.key.id)
      registry.now += 1_000
      await registry.store.close()
      expect([await use(admin, 'reduce'), await use(operator, 'reduce')]).toEqual(['admin', 'operator'])
      const wrong = `${admin.slice(0, -1)}${admin.endsWith('0') ? '1' : '0'}`
      for (const secret of [wrong, unread, revoked.secret, ...others])
        expect(['admin', 'operator', 'developer']).not.toContain(await use(secret, 'reduce'))
      expect(['admin', 'operator']).not.toContain(await use(admin))
      await expect(registry.guardKeys.refresh()).rejects.toThrow()
      expect(await use(revoked.secret, 'reduce')).not.toBe('admin')
    })

    it('that are revoked are over with the next request, however often they were used before', async () => {
      const { key, secret } = await keys().create(ADMIN, body())
      for (let i = 0; i < 3; i++) expect(await use(secret)).toBe('developer')
      const revoked = await keys().revoke(ADMIN, key.id)
      expect(await use(secret)).toBe('unauthenticated')
      registry.now += 10
      expect(await keys().revoke(ADMIN, key.id)).toEqual(revoked)
      expect(await keys().list(ADMIN, { all: false, limit: 10 })).toEqual({ items: [], nextCursor: null })
    })

    it.each([
      ['of another tenant', ADMIN, { tenant: 'globex' }, 'tenant_not_found'],
      ['of a tenant that is not there', PLATFORM, { tenant: 'nobody' }, 'tenant_not_found'],
      ['of the platform by who is not of it', ADMIN, { platform: true }, 'forbidden'],
      ['by who is bound to agents', as({ agents: ['a'] }), {}, 'forbidden'],
      ['of an admin that is bound to agents', ADMIN, { role: 'admin', agents: ['a'] }, 'invalid_request'],
      ['of the platform that is bound to agents', PLATFORM, { platform: true, agents: ['a'] }, 'invalid_request'],
    ] as const)('are never made for more than their maker has: %s', async (_what, who, more, code) => {
      await expect(keys().create(who, body(more))).rejects.toMatchObject({ code })
      expect(registry.story()).toEqual(['key.create denied'])
      for (const tenant of ['acme', 'globex'])
        expect(await keys().list(PLATFORM, { tenant, all: true, limit: 10 })).toEqual({ items: [], nextCursor: null })
    })

    it('of another tenant are not found, but for the platform', async () => {
      const { key } = await keys().create(PLATFORM, body())
      for (const attempt of [
        () => keys().get(ADMIN, key.id),
        () => keys().revoke(ADMIN, key.id),
        () => keys().rotate(ADMIN, key.id, rotateKeyBody.parse({})),
      ])
        await expect(attempt()).rejects.toMatchObject({ code: 'key_not_found' })
      const asked = { tenant: 'globex', all: true, limit: 10 }
      await expect(keys().list(ADMIN, asked)).rejects.toMatchObject({ code: 'tenant_not_found' })
      expect((await keys().get(PLATFORM, key.id)).revokedAt).toBeNull()
    })

    it('of the platform are out of reach for an admin of the same tenant: rotating one would be a way up', async () => {
      const { key } = await keys().create(PLATFORM, body({ tenant: 'acme', role: 'admin', platform: true }))
      const rotated = keys().rotate(ADMIN, key.id, rotateKeyBody.parse({}))
      await expect(rotated).rejects.toMatchObject({ code: 'forbidden' })
      await expect(keys().revoke(ADMIN, key.id)).rejects.toMatchObject({ code: 'forbidden' })
      expect(await keys().get(ADMIN, key.id)).toMatchObject({ revokedAt: null, expiresAt: null })
    })

    it('are listed newest first, page by page, also those of one moment', async () => {
      const made: string[] = []
      for (let i = 0; i < 5; i++) {
        if (i === 3) registry.now++
        made.push((await keys().create(ADMIN, body())).key.id)
      }
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await keys().list(ADMIN, { all: false, limit: 2, cursor })
        seen.push(...page.items.map((key) => key.id))
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined)
      expect(seen.toSorted()).toEqual(made.toSorted())
      expect(new Set(seen.slice(0, 2))).toEqual(new Set(made.slice(3)))
    })
  })
