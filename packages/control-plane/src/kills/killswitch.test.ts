import { AirlockError, freezeRequest, type KillReport, type Permit } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findSandbox } from '../store/sandboxes.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { insertWebhook } from '../store/webhooks.ts'
import type { Store } from '../store/engine/store.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { KillHooks, webhookHook } from './kill-hooks.ts'
import { Killswitch } from './killswitch.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aCommand, aSandbox, caller, CALLER, World } from '../testing/world.ts'

const ADMIN = caller({ role: 'admin', actor: 'key:admin', platform: true })
const WEBHOOK = {
  url: 'https://hooks.example/',
  events: ['kill' as const],
  secret: 'whs_test',
  createdAt: 0,
  createdBy: 'key:admin',
  lastAt: null,
  lastError: null,
}
const AGENT = { scope: 'agent', target: 'default', reason: 'test' } as const

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let recorder: TestRecorder
    let world: World
    beforeAll(async () => {
      stores = await dialect.start()
      recorder = await TestRecorder.start()
    })
    beforeEach(async () => (world = await World.make(recorder, { place: await stores.make() })))
    afterEach(() => world?.close())
    afterAll(async () => {
      await recorder?.stop()
      await stores?.stop()
    })

    const create = async () => (await world.lifecycle.creation.create(CALLER, aSandbox())).id
    const kill = async () => world.lifecycle.killswitch.on(ADMIN, AGENT)
    /** Gives up early where it cannot get through. */
    const hastily = () => {
      const { termination, connections } = world.lifecycle
      const hooks = new KillHooks([], world.context.log)
      return new Killswitch(world.context, { termination, connections, hooks, runMs: 500 })
    }
    const codeOf = async (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error: unknown) => (error instanceof AirlockError ? error.code : error),
      )
    const end = async (id: string) => {
      const row = await world.store.query((db) => findSandbox(db, id))
      return [row?.state, row?.endReason]
    }

    it('freezes everything in scope before it ends anything', async () => {
      const ids = [await create(), await create()].toSorted()
      world.plane.calls.length = 0
      const report = await kill()
      expect(world.plane.calls.find((call) => /^(?:POST \/freeze|DELETE)/.test(call))).toBe('POST /freeze')
      expect(report.sandboxes).toEqual(
        ids.map((id) => ({
          id,
          node: 'here',
          frozenMs: 1,
          goneMs: expect.any(Number),
          processes: 3,
          verified: true,
        })),
      )
      for (const id of ids) expect(await end(id)).toEqual(['stopped', 'killed'])
    })

    it('makes every permit worthless that was signed before it, for as long as that is good', async () => {
      const signed: number[] = []
      world.plane.script('POST /sandboxes', ({ body }) => {
        const { permit: token } = JSON.parse(body.toString()) as { permit: string }
        const payload = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as Permit
        signed.push(payload.expiresAt)
        throw new AirlockError('timeout')
      })
      await codeOf(create())
      const bans: number[] = []
      world.plane.script('POST /freeze', ({ body }) => {
        bans.push(freezeRequest.parse(JSON.parse(body.toString())).permitsUntil)
        return { sandboxes: [] }
      })
      await kill()
      expect([signed.length, bans.length]).toEqual([1, 1])
      expect(Math.min(...bans)).toBeGreaterThanOrEqual(Math.max(...signed))
    })

    it('refuses every way to be granted something, from the next call on', async () => {
      const id = await create()
      world.plane.script('POST /freeze', async () => {
        expect(await codeOf(world.lifecycle.commands.run(CALLER, id, aCommand()))).toBe('killed')
        expect(await codeOf(create())).toBe('killed')
        return { sandboxes: [] }
      })
      expect((await kill()).unverified).toEqual([])
      world.plane.script('POST /freeze', undefined)
      expect(await codeOf(create())).toBe('killed')
      await world.lifecycle.killswitch.lift(ADMIN, { scope: 'agent', target: 'default' })
      await create()
    })

    it('is still on after a restart', async () => {
      await kill()
      await world.restart()
      expect(await codeOf(create())).toBe('killed')
      expect(await world.lifecycle.killswitch.list(ADMIN, { all: false })).toMatchObject([{ reason: 'test' }])
    })

    it('that was cut after its row was written is finished by the next start', async () => {
      const id = await create()
      world.at = (name) => (name === 'kill.row-written' ? new Promise(() => {}) : undefined)
      void kill()
      await expect.poll(async () => codeOf(create())).toBe('killed')
      await expect
        .poll(async () => (await world.store.query((db) => db.selectFrom('kills').selectAll().execute())).length)
        .toBe(1)
      world.at = () => {}
      await world.restart()
      await world.sweep()
      expect(await end(id)).toEqual(['stopped', 'killed'])
    })

    it('tells what it could not verify, and the sweep goes on until it is gone', async () => {
      const id = await create()
      world.plane.script('DELETE /sandboxes/:id', () => Promise.reject(new AirlockError('internal', 'it lives')))
      const report = await hastily().on(ADMIN, AGENT)
      expect(report).toMatchObject({ unverified: [id], sandboxes: [{ id, goneMs: null, verified: false }] })
      world.plane.script('DELETE /sandboxes/:id', undefined)
      await world.sweep()
      expect(await end(id)).toEqual(['stopped', 'killed'])
      expect(await world.lifecycle.killswitch.list(ADMIN, { all: false })).toMatchObject([
        { unverified: [], sandboxes: [{ id, verified: true }] },
      ])
    })

    it('waits for a data plane that is on its way back', async () => {
      const id = await create()
      await world.plane.die()
      const killing = kill()
      await expect.poll(async () => codeOf(create())).toBe('killed')
      await world.plane.listen()
      expect(await killing).toMatchObject({ unverified: [], sandboxes: [{ id, verified: true }] })
    })

    it('kills though nothing can be written, holds, and is written later', async () => {
      const id = await create()
      const free = await stores.fill(world.place)
      const report = await kill()
      expect(report).toMatchObject({ persisted: false, unverified: [], sandboxes: [{ id, verified: true }] })
      expect(world.plane.sandboxes.has(id)).toBe(false)
      expect(await codeOf(create())).toBe('killed')
      await free()
      await world.sweep()
      expect(await end(id)).toEqual(['stopped', 'killed'])
      await world.restart()
      expect(await world.lifecycle.killswitch.list(ADMIN, { all: false })).toMatchObject([
        { id: report.id, persisted: true, sandboxes: [{ id, verified: true }] },
      ])
      expect(await codeOf(create())).toBe('killed')
    })

    it('that the store could not take holds after a restart, is written then, and is over once lifted', async () => {
      const free = await stores.fill(world.place)
      const { id } = await kill()
      await world.restart()
      expect(await codeOf(create())).toBe('killed')
      expect(await world.lifecycle.killswitch.list(ADMIN, { all: false })).toMatchObject([{ id, persisted: false }])
      await free()
      await world.restart()
      expect(await codeOf(create())).toBe('killed')
      expect(await world.lifecycle.killswitch.list(ADMIN, { all: false })).toMatchObject([{ id, persisted: true }])
      await world.lifecycle.killswitch.lift(ADMIN, AGENT)
      await world.restart()
      await create()
      expect(world.context.killSpill.found).toEqual([])
    })

    it('of a sandbox ends with the sandbox', async () => {
      const [id, other] = [await create(), await create()]
      const { killswitch } = world.lifecycle
      world.plane.script('DELETE /sandboxes/:id', () => Promise.reject(new AirlockError('internal', 'it lives')))
      const on = await hastily().on(ADMIN, { scope: 'sandbox', target: id, reason: '' })
      await killswitch.look()
      expect(await killswitch.list(ADMIN, { all: false })).toMatchObject([{ id: on.id, liftedAt: null }])
      world.plane.script('DELETE /sandboxes/:id', undefined)
      await world.sweep()
      await world.sweep()
      expect(await end(id)).toEqual(['stopped', 'killed'])
      expect(await killswitch.list(ADMIN, { all: false })).toEqual([])
      expect(world.context.kills.kills).toEqual([])
      expect(await killswitch.list(ADMIN, { all: true })).toMatchObject([{ id: on.id, liftedBy: 'system' }])
      expect((await end(other))[0]).toBe('active')
    })

    it('ends what is being made, and it never becomes active', async () => {
      const begun = Promise.withResolvers<void>()
      const gate = Promise.withResolvers<void>()
      world.at = async (name) => {
        if (name !== 'create.started') return
        begun.resolve()
        await gate.promise
      }
      const made = codeOf(create())
      await begun.promise
      const killing = kill()
      await expect.poll(async () => codeOf(world.lifecycle.creation.create(CALLER, aSandbox()))).toBe('killed')
      gate.resolve()
      expect(await made).toBe('killed')
      expect((await killing).unverified).toEqual([])
      expect([...world.plane.sandboxes.keys()]).toEqual([])
    })

    it('tells its hooks, and one that fails or hangs stops nothing', async () => {
      const told: KillReport[] = []
      const sent: unknown[] = []
      world.killHooks = [
        { name: 'broken', onKill: () => Promise.reject(new AirlockError('internal')) },
        { name: 'hanging', onKill: () => new Promise(() => {}) },
        { name: 'telling', onKill: async (report) => void told.push(report) },
        webhookHook({ send: (...args) => void sent.push(args) }, world.store),
      ]
      await world.restart()
      const id = await create()
      const report = await kill()
      expect(told).toEqual([report])
      const { scope, tenant, target, reason, at, slowestMs } = report
      const payload = { id: report.id, scope, tenant, target, reason, at, slowestMs, unverified: [] }
      expect(sent).toEqual([['default', 'kill', { ...payload, sandboxes: [{ id, verified: true }] }]])
    })

    it('of everything tells the webhooks of every tenant what it lost', async () => {
      const sent: unknown[] = []
      await world.store.query((db) => insertTenantIfAbsent(db, { id: 'idle', createdAt: 0 }))
      for (const tenant of ['default', 'idle'])
        await world.store.query((db) => insertWebhook(db, { ...WEBHOOK, id: `whk_${tenant}`, tenant }))
      // The hook reads from the store that the next life opens.
      const store = { query: async (work: Parameters<Store['query']>[0]) => world.store.query(work) } as Store
      world.killHooks = [webhookHook({ send: (...args) => void sent.push(args) }, store)]
      await world.restart()
      const id = await create()
      const { at, slowestMs, ...report } = await world.lifecycle.killswitch.on(ADMIN, { scope: 'all', reason: 'drill' })
      const payload = { id: report.id, scope: 'all', tenant: null, target: null, reason: 'drill', at, unverified: [] }
      await expect
        .poll(() => sent)
        .toEqual([
          ['default', 'kill', { ...payload, slowestMs, sandboxes: [{ id, verified: true }] }],
          ['idle', 'kill', { ...payload, slowestMs: null, sandboxes: [] }],
        ])
    })

    it('refuses who is bound to agents, and everything to who is not of the platform', async () => {
      const { killswitch } = world.lifecycle
      const bound = caller({ role: 'operator', agents: ['default'] })
      expect(await codeOf(killswitch.on(bound, AGENT))).toBe('forbidden')
      expect(await codeOf(killswitch.on(caller({ role: 'admin' }), { scope: 'all', reason: '' }))).toBe('forbidden')
      expect(await codeOf(killswitch.list(bound, { all: false }))).toBe('forbidden')
      await create()
    })

    it('waits for its record when it is lifted, and stays on without it', async () => {
      await kill()
      world.refused = ['kill.lift requested']
      expect(await codeOf(world.lifecycle.killswitch.lift(ADMIN, AGENT))).toBe('evidence_unavailable')
      expect(await codeOf(create())).toBe('killed')
    })
  })
