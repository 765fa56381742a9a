import { type CreateSandboxBody, DEFAULTS, type EndReason } from '@airlock/contract'
import { newId } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findCommand } from '../store/commands.ts'
import { findSandbox, listLiving, listSandboxes } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { Sandboxes } from '../sandboxes/sandboxes.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { ISOLATION } from '../testing/scripted-data-plane.ts'
import { aCommand, aSandbox, CALLER, World } from '../testing/world.ts'

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

    const limits = {
      memoryBytes: DEFAULTS.memoryBytes.default,
      cpus: DEFAULTS.cpus.default,
      pids: DEFAULTS.pids.default,
      diskBytes: DEFAULTS.diskBytes.default,
      inodes: DEFAULTS.inodes.default,
      openFiles: DEFAULTS.openFiles.default,
      cpuSeconds: null,
    }
    const OWNER = { tenant: 'default', agent: 'default', limits } as const
    const MINUTE = 60_000
    const create = async (asked: Partial<CreateSandboxBody> = {}) =>
      (await world.lifecycle.creation.create(CALLER, aSandbox(asked))).id
    const row = (id: string) => world.store.query((db) => findSandbox(db, id))
    const end = async (id: string): Promise<[string, EndReason | null] | undefined> => {
      const found = await row(id)
      return found && [found.state, found.endReason]
    }
    const run = async (sandbox: string) => (await world.lifecycle.commands.run(CALLER, sandbox, aCommand())).noun
    const failure = async (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error: unknown) => error,
      )

    describe('the sweep', () => {
      it('ends a sandbox when its time to live is over, and not before', async () => {
        const id = await create({ ttlMs: 5 * MINUTE })
        world.clock.advance(5 * MINUTE - 1)
        await world.sweep()
        expect(await end(id)).toEqual(['active', null])
        world.clock.advance(1)
        await world.sweep()
        expect(await end(id)).toEqual(['stopped', 'ttl'])
      })

      it('ends a sandbox that nobody used', async () => {
        const id = await create({ ttlMs: 60 * MINUTE, idleMs: MINUTE })
        world.clock.advance(MINUTE)
        await world.sweep()
        expect(await end(id)).toEqual(['stopped', 'idle'])
      })

      it('ends a sandbox at its maximum lifetime, however it is used', async () => {
        const id = await create({ ttlMs: 5 * MINUTE, maxLifetimeMs: 7 * MINUTE })
        for (let minute = 0; minute < 7; minute++) {
          await run(id)
          world.clock.advance(MINUTE)
        }
        expect((await row(id))?.expiresAt).toBe((await row(id))?.endsAt)
        await world.sweep()
        expect(await end(id)).toEqual(['stopped', 'max_lifetime'])
      })

      it('lets use extend a life, also over a restart', async () => {
        const id = await create({ ttlMs: 5 * MINUTE })
        world.clock.advance(4 * MINUTE)
        await run(id)
        await world.restart()
        world.clock.advance(4 * MINUTE)
        await world.sweep()
        expect(await end(id)).toEqual(['active', null])
        world.clock.advance(MINUTE)
        await world.sweep()
        expect(await end(id)).toEqual(['stopped', 'ttl'])
      })

      it('counts a command that runs as use', async () => {
        const id = await create({ ttlMs: MINUTE, idleMs: MINUTE })
        world.plane.sandboxes.set(id, { id, ...OWNER, state: 'running', lostReason: null, runningCommands: 1 })
        for (let i = 0; i < 5; i++) {
          world.clock.advance(MINUTE - 1)
          await world.sweep()
        }
        expect(await end(id)).toEqual(['active', null])
      })

      it('extends when asked, never past the end of the permit, and records it', async () => {
        const id = await create({ ttlMs: MINUTE, maxLifetimeMs: 10 * MINUTE })
        const now = world.clock.now()
        const extend = (ttlMs: number | undefined) =>
          new Sandboxes(world.context, world.lifecycle).extend(CALLER, id, { ttlMs })
        expect((await extend(5 * MINUTE)).expiresAt).toBe(new Date(now + 5 * MINUTE).toISOString())
        expect((await extend(undefined)).expiresAt).toBe(new Date(now + 5 * MINUTE).toISOString())
        expect((await extend(60 * MINUTE)).expiresAt).toBe(new Date(now + 10 * MINUTE).toISOString())
        expect((await world.story(id)).slice(2)).toEqual(
          [1, 2, 3].flatMap(() => ['sandbox.extend requested', 'sandbox.extend done']),
        )
        world.refused = ['sandbox.extend requested']
        expect(await failure(extend(undefined))).toMatchObject({ code: 'evidence_unavailable' })
      })

      it('does not end a sandbox that was used while it looked', async () => {
        const id = await create({ ttlMs: MINUTE })
        world.clock.advance(MINUTE)
        world.plane.script('GET /sandboxes', async () => {
          const found = await row(id)
          if (found) await world.lifecycle.activity.touch(found)
          return { sandboxes: [...world.plane.sandboxes.values()] }
        })
        await world.sweep()
        expect(await end(id)).toEqual(['active', null])
      })

      it('keeps a sandbox whose creation was finished while it looked', async () => {
        const gate = Promise.withResolvers<void>()
        const begun = Promise.withResolvers<void>()
        world.plane.script('POST /sandboxes', async () => {
          begun.resolve()
          await gate.promise
          const [creating] = await world.store.query((db) => listLiving(db, world.context.node.id))
          const id = creating?.id ?? ''
          world.plane.sandboxes.set(id, { id, ...OWNER, state: 'running', lostReason: null, runningCommands: 0 })
          return { id, image: 'scripted', isolation: ISOLATION }
        })
        const created = create()
        await begun.promise
        world.plane.script('GET /sandboxes', async () => {
          gate.resolve()
          await created
          return { sandboxes: [...world.plane.sandboxes.values()] }
        })
        await world.sweep()
        expect(await end(await created)).toEqual(['active', null])
      })

      it.each([
        ['guest_lost', 'error'],
        ['host_restarted', 'error'],
        ['max_lifetime', 'stopped'],
      ] as const)('ends what the data plane lost by %s', async (lostReason, state) => {
        const id = await create()
        world.plane.sandboxes.set(id, { id, ...OWNER, state: 'lost', lostReason, runningCommands: 0 })
        await world.sweep()
        expect(await end(id)).toEqual([state, lostReason])
        expect(world.plane.sandboxes.has(id)).toBe(false)
      })

      it('says of a guest that died for want of memory that it was that', async () => {
        const id = await create()
        const lost = { state: 'lost', lostReason: 'guest_lost', lostFor: 'out_of_memory' } as const
        world.plane.sandboxes.set(id, { id, ...OWNER, ...lost, runningCommands: 0 })
        await world.sweep()
        const row = await world.store.query((db) => findSandbox(db, id))
        expect(row).toMatchObject({ state: 'error', endReason: 'guest_lost', error: { code: 'out_of_memory' } })
      })

      it.each(['destroyed at its start', 'kept as lost'] as const)(
        'alerts the tenant of a sandbox with damaged files that the data plane %s',
        async (how) => {
          const id = await create()
          const lost = { state: 'lost', lostReason: 'guest_lost', lostFor: 'state_damaged' } as const
          if (how === 'kept as lost') world.plane.sandboxes.set(id, { id, ...OWNER, ...lost, runningCommands: 0 })
          else {
            world.plane.sandboxes.delete(id)
            world.plane.damaged.add(id)
          }
          world.webhooks.length = 0
          await world.sweep()
          await world.sweep()
          const row = await world.store.query((db) => findSandbox(db, id))
          expect(row).toMatchObject({ state: 'error', endReason: 'guest_lost', error: { code: 'state_damaged' } })
          const alert = { change: 'raised', sandbox: id, agent: row?.agent, resource: 'state', level: 'critical' }
          expect(world.webhooks).toEqual([[row?.tenant, 'alert', { ...alert, reason: row?.error?.message }]])
          const told = (await world.evidence(id)).find((one) => one.status === 'done' && one.error)
          expect(told).toMatchObject({ point: 'sandbox.terminate', error: { code: 'state_damaged' } })
          expect(world.plane.damaged.size).toBe(0)
        },
      )

      it('ends what the data plane does not have: broken down, or gone with a reboot', async () => {
        const [lost, rebooted] = [await create(), await create()]
        world.plane.sandboxes.delete(lost)
        await world.sweep()
        expect(await end(lost)).toEqual(['error', 'guest_lost'])
        world.plane.sandboxes.clear()
        world.plane.bootId = 'boot-2'
        await world.sweep()
        expect(await end(rebooted)).toEqual(['error', 'host_restarted'])
      })

      it('removes a sandbox that has no row, and leaves one whose row came while it looked', async () => {
        const orphan = newId('sbx')
        const kept = await create()
        world.plane.sandboxes.set(orphan, {
          id: orphan,
          ...OWNER,
          state: 'running',
          lostReason: null,
          runningCommands: 0,
        })
        let late = ''
        world.plane.script('GET /health', async () => {
          late = await create()
          return world.plane.health()
        })
        await world.sweep()
        expect([...world.plane.sandboxes.keys()]).toEqual([kept, late])
        expect([await end(kept), await end(late)]).toEqual([
          ['active', null],
          ['active', null],
        ])
      })

      it('leaves a sandbox alone that is being made', async () => {
        world.at = async (name) => (name === 'create.recorded' ? world.sweep() : undefined)
        expect(await end(await create())).toEqual(['active', null])
      })

      it('changes nothing when the data plane does not answer', async () => {
        const id = await create({ ttlMs: MINUTE })
        world.clock.advance(MINUTE)
        await world.plane.die()
        expect(await failure(world.sweep())).toMatchObject({ code: 'data_plane_unavailable' })
        expect(await end(id)).toEqual(['active', null])
        world.plane.sandboxes.clear()
        await world.plane.listen()
        world.plane.script('GET /sandboxes', () => ({ sandboxes: 'many' }))
        expect(await failure(world.sweep())).toMatchObject({ code: 'internal' })
        expect(await end(id)).toEqual(['active', null])
      })
    })

    describe('a start after a crash', () => {
      it('keeps what lives and says so in the evidence', async () => {
        const id = await create()
        await world.restart()
        expect(await end(id)).toEqual(['active', null])
        expect(await world.story(id)).toEqual(['sandbox.create requested', 'sandbox.create done', 'sandbox.adopt done'])
      })

      it('starts while the chain of one tenant is being checked', async () => {
        const id = await create()
        world.context.readiness.setChain('default', 'waiting')
        world.refused = ['sandbox.adopt done']
        await world.lifecycle.reconciler.adopt()
        expect(await world.story(id)).toEqual(['sandbox.create requested', 'sandbox.create done', 'sandbox.adopt done'])
      })

      it.each(['create.row-written', 'create.recorded', 'create.started'] as const)(
        'destroys a sandbox whose creation was cut at %s, and its outcome is unknown',
        async (where) => {
          let cut = () => {}
          const isCut = new Promise<void>((resolve) => (cut = resolve))
          world.at = (name) => {
            if (name !== where) return undefined
            cut()
            return new Promise(() => {})
          }
          void create({ name: 'box' })
          await isCut
          world.at = () => {}
          await world.restart()
          const filter = { tenant: 'default', limit: 10 }
          const [found] = await world.store.query((db) =>
            listSandboxes(db, {
              ...filter,
              agents: null,
              states: ['error'],
              name: 'box',
              labels: {},
              before: undefined,
            }),
          )
          expect(found).toMatchObject({ endReason: 'create_interrupted', error: { code: 'create_interrupted' } })
          expect(world.plane.sandboxes.size).toBe(0)
          expect((await world.story(found?.id)).filter((line) => line !== 'sandbox.create requested')).toEqual([
            'sandbox.create unknown',
            'sandbox.terminate requested',
            'sandbox.terminate done',
          ])
          expect(await end(await create({ name: 'box' }))).toEqual(['active', null])
        },
      )

      it.each(['terminate.marked', 'terminate.destroyed'] as const)(
        'finishes an end that was cut at %s',
        async (where) => {
          const id = await create()
          let cut = () => {}
          const isCut = new Promise<void>((resolve) => (cut = resolve))
          world.at = (name) => {
            if (name !== where) return undefined
            cut()
            return new Promise(() => {})
          }
          void world.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'key:test' })
          await isCut
          world.at = () => {}
          await world.restart()
          expect(await end(id)).toEqual(['stopped', 'terminated'])
          expect((await world.story(id)).at(-1)).toBe('sandbox.terminate done')
        },
      )

      it('goes on following commands that run, and loses those that the data plane does not have', async () => {
        const id = await create()
        const [going, unknown] = [await run(id), await run(id)]
        world.plane.commands.delete(unknown.id)
        await world.restart()
        await world.sweep()
        const find = (command: string) => world.store.query((db) => findCommand(db, { sandbox: id, command }))
        await expect.poll(() => find(unknown.id)).toMatchObject({ state: 'lost' })
        expect(await find(going.id)).toMatchObject({ state: 'running' })
        world.plane.endCommand(going.id, { exitCode: 4 })
        await expect.poll(() => find(going.id)).toMatchObject({ state: 'exited', exitCode: 4 })
        const ends = (await world.evidence(id)).filter((record) => record.point === 'command.run').slice(2)
        expect(ends.map(({ status, payload }) => [status, payload['command']])).toEqual([
          ['unknown', unknown.id],
          ['done', going.id],
        ])
      })
    })
  })
