import { AirlockError, type KillReport } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findSandbox } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { KillHooks, webhookHook } from './kill-hooks.ts'
import { Killswitch } from './killswitch.ts'
import { TestRecorder } from './testing/recorder.ts'
import { aCommand, aSandbox, caller, CALLER, World } from './testing/world.ts'

const ADMIN = caller({ role: 'admin', actor: 'key:admin', platform: true })
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
        webhookHook({ send: (...args) => void sent.push(args) }),
      ]
      await world.restart()
      const id = await create()
      const report = await kill()
      expect(told).toEqual([report])
      const { scope, tenant, target, reason, at, slowestMs } = report
      const payload = { id: report.id, scope, tenant, target, reason, at, slowestMs, unverified: [] }
      expect(sent).toEqual([['default', 'kill', { ...payload, sandboxes: [{ id, verified: true }] }]])
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
