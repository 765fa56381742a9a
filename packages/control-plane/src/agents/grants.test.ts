import { addGrantBody, AirlockError, BOUNDS, registerAgentBody } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { takeGrant } from '../store/grants.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, caller, CALLER, World } from '../testing/world.ts'
import { createRegistry, type Registry } from '../app/registry.ts'

const ADMIN = caller({ role: 'admin', actor: 'key:admin', platform: true })
const FOUND = { kind: 'dir', dev: '65024', ino: '17' } as const

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let recorder: TestRecorder
    let stores: TestStores
    let world: World
    let who: Registry

    beforeAll(async () => {
      recorder = await TestRecorder.start()
      stores = await dialect.start()
    })
    afterAll(async () => {
      await recorder?.stop()
      await stores?.stop()
    })
    beforeEach(async () => {
      world = await World.make(recorder, { place: await stores.make() })
      who = createRegistry(world.context, world.lifecycle)
      world.plane.script('POST /paths/look', () => FOUND)
      await who.agents.register(ADMIN, registerAgentBody.parse({ id: 'coder', approve: true }))
    })
    afterEach(() => world?.close())

    const add = (path: string, body: object = {}) =>
      who.grants.add(ADMIN, 'coder', addGrantBody.parse({ path, ...body }))
    const create = () => world.lifecycle.creation.create(CALLER, aSandbox({ agent: 'coder' }))
    const sandbox = (id: string) => world.store.query((db) => findSandbox(db, id))

    it('is in the mount table of the sandboxes that come after it', async () => {
      const before = await create()
      const grant = await add('/srv/data set', { mode: 'rw' })
      const after = await create()
      const mount = { grant: grant.id, path: '/srv/data set', target: '/grants/data_set', mode: 'rw', kind: 'dir' }
      expect([before.mounts, after.mounts, (await sandbox(after.id))?.mounts]).toEqual([[], [mount], [mount]])
    })

    it('that another node took back ends its holders at the next look, and no others', async () => {
      const [kept, taken] = [await add('/srv/kept'), await add('/srv/taken')]
      const holder = await create()
      const key = { tenant: 'default', agent: 'coder' }
      await world.sweep()
      expect((await sandbox(holder.id))?.state).toBe('active')
      await world.store.query((db) => takeGrant(db, { ...key, id: taken.id }))
      const other = await create()
      await world.restart()
      await world.sweep()
      expect(await sandbox(holder.id)).toMatchObject({ state: 'stopped', endReason: 'grant_revoked' })
      expect(await sandbox(other.id)).toMatchObject({ state: 'active', mounts: [{ grant: kept.id }] })
    })

    it('that is taken back while a sandbox is being made ends it once it is', async () => {
      const grant = await add('/srv/data')
      let removal: Promise<void> | undefined
      world.at = (name) => {
        if (name === 'create.started') removal = who.grants.remove(ADMIN, { agent: 'coder', grant: grant.id })
      }
      const made = await create()
      await removal
      expect(await sandbox(made.id)).toMatchObject({ state: 'stopped', endReason: 'grant_revoked' })
    })

    it('is refused when the data plane refuses it, and that is evidence; nothing is stored', async () => {
      world.plane.script('POST /paths/look', () => {
        throw new AirlockError('grant_refused', '/etc is never granted.')
      })
      await expect(add('/etc')).rejects.toMatchObject({ code: 'grant_refused', message: '/etc is never granted.' })
      expect(await who.grants.list(ADMIN, { agent: 'coder' })).toEqual([])
      expect((await world.story()).filter((line) => line.startsWith('grant.'))).toEqual(['grant.add denied'])
    })

    it('is not stored when its record cannot be written; it is taken back all the same', async () => {
      world.refused = ['grant.add requested']
      await expect(add('/srv/data')).rejects.toMatchObject({ code: 'evidence_unavailable' })
      expect(await who.grants.list(ADMIN, { agent: 'coder' })).toEqual([])
      world.refused = []
      const grant = await add('/srv/data')
      world.refused = ['grant.remove done']
      await who.grants.remove(ADMIN, { agent: 'coder', grant: grant.id })
      expect(await who.grants.list(ADMIN, { agent: 'coder' })).toEqual([])
    })

    it('is bounded in number, and one of two at the same place at once is refused', async () => {
      const both = await Promise.allSettled([add('/srv/a/x'), add('/srv/b/x')])
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      for (let number = 1; number < BOUNDS.grants; number++) await add(`/srv/${number}`)
      await expect(add('/srv/more')).rejects.toMatchObject({ code: 'too_many_grants' })
    })

    it('of an agent that is deleted is gone with it', async () => {
      await add('/srv/data')
      const holder = await create()
      await who.agents.remove(ADMIN, 'coder', {})
      expect((await sandbox(holder.id))?.endReason).toBe('agent_deleted')
      await who.agents.register(ADMIN, registerAgentBody.parse({ id: 'coder', approve: true }))
      expect((await create()).mounts).toEqual([])
    })

    it('is not for who is bound to agents, and not found in a tenant that is not yours', async () => {
      const bound = caller({ role: 'operator', agents: ['coder'] })
      const stranger = caller({ role: 'admin', tenant: 'elsewhere' })
      const grant = await add('/srv/data')
      const asked = { agent: 'coder', grant: grant.id }
      expect(await who.grants.list(bound, asked)).toEqual([grant])
      await expect(who.grants.remove(bound, asked)).rejects.toMatchObject({ code: 'forbidden' })
      for (const tenant of ['default', undefined])
        await expect(who.grants.list(stranger, { agent: 'coder', tenant })).rejects.toMatchObject({
          code: 'tenant_not_found',
        })
    })
  })
