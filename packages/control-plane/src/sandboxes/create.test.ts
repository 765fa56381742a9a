import {
  AirlockError,
  type CreatedSandbox,
  type CreateSandboxBody,
  ERRORS,
  type FailpointName,
} from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findAgent } from '../store/agents.ts'
import { listLiving, listSandboxes, type StoredSandbox } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { ISOLATION } from '../testing/scripted-data-plane.ts'
import { aSandbox, CALLER, caller, World } from '../testing/world.ts'

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let recorder: TestRecorder
    let world: World
    beforeAll(async () => {
      stores = await dialect.start()
      recorder = await TestRecorder.start()
    })
    beforeEach(async () => (world = await World.make(recorder, { capacity: 3, place: await stores.make() })))
    afterEach(() => world?.close())
    afterAll(async () => {
      await recorder?.stop()
      await stores?.stop()
    })

    const create = (asked: Partial<CreateSandboxBody> = {}) => world.lifecycle.creation.create(CALLER, aSandbox(asked))
    const failure = async (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error: unknown) => error,
      )
    const living = () => world.store.query((db) => listLiving(db, 'here'))
    const agent = () => world.store.query((db) => findAgent(db, { tenant: 'default', agent: 'default' }))

    async function rows(): Promise<readonly StoredSandbox[]> {
      const filter = { tenant: 'default', agents: null, name: undefined, labels: {}, before: undefined, limit: 100 }
      return world.store.query((db) =>
        listSandboxes(db, { ...filter, states: ['creating', 'active', 'stopping', 'stopped', 'error'] }),
      )
    }

    describe('creating a sandbox', () => {
      it('answers what was asked for, with what really isolates it', async () => {
        const now = world.clock.now()
        const sandbox = await create({ name: 'box', labels: { a: 'b' }, ttlMs: 5000, limits: { pids: 32 } })
        expect(sandbox).toEqual({
          id: expect.stringMatching(/^sbx_/),
          tenant: 'default',
          agent: 'default',
          generation: 1,
          name: 'box',
          node: 'here',
          template: 'base',
          image: 'scripted',
          state: 'active',
          labels: { a: 'b' },
          limits: {
            memoryBytes: 536_870_912,
            cpus: 1,
            pids: 32,
            diskBytes: 1_073_741_824,
            inodes: 65_536,
            openFiles: 4096,
            cpuSeconds: null,
          },
          mounts: [],
          doors: ['control'],
          models: [],
          modelLimits: { calls: null, tokens: null, dollars: null, concurrentCalls: 16 },
          ttlMs: 5000,
          idleMs: 3_600_000,
          onIdle: 'terminate',
          maxPausedMs: 86_400_000,
          pausedAt: null,
          pausedBy: null,
          createdAt: new Date(now).toISOString(),
          lastActiveAt: new Date(now).toISOString(),
          expiresAt: new Date(now + 5000).toISOString(),
          endsAt: new Date(now + 86_400_000).toISOString(),
          endedAt: null,
          endReason: null,
          error: null,
          isolation: ISOLATION,
          agentSnapshot: { state: 'connected', generation: 1, approved: true, version: null, labels: {} },
          reserved: {
            reservation: expect.stringMatching(/^rsv_/),
            limits: {
              memoryBytes: 536_870_912,
              cpus: 1,
              pids: 32,
              diskBytes: 1_073_741_824,
              inodes: 65_536,
              openFiles: 4096,
              cpuSeconds: null,
            },
            budget: {
              tenant: 'default',
              agent: 'default',
              limits: world.budget,
              set: [],
              reserved: { sandboxes: 1, memoryBytes: 536_870_912, diskBytes: 1_073_741_824, cpus: 1 },
              spent: {
                day: new Date(now).toISOString().slice(0, 10),
                computeSeconds: 0,
                dollars: 0,
                modelCalls: 0,
                modelTokens: 0,
              },
            },
          },
        } satisfies CreatedSandbox)
        expect(await world.story(sandbox.id)).toEqual(['sandbox.create requested', 'sandbox.create done'])
        expect(await agent()).toMatchObject({ state: 'connected', generation: 1 })
      })

      it('raises the generation only when the agent becomes connected', async () => {
        const [first, second] = [await create(), await create()]
        expect([first.generation, second.generation]).toEqual([1, 1])
        const end = { reason: 'terminated', actor: 'key:test' } as const
        await world.lifecycle.termination.terminate(first.id, end)
        expect(await agent()).toMatchObject({ state: 'connected', generation: 1 })
        await world.lifecycle.termination.terminate(second.id, end)
        expect(await agent()).toMatchObject({ state: 'idle', generation: 1 })
        expect((await create()).generation).toBe(2)
      })

      it('lets exactly one of many have a name', async () => {
        const results = await Promise.allSettled(Array.from({ length: 3 }, () => create({ name: 'box' })))
        expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1)
        const codes = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
        expect(codes).toEqual(['name_taken', 'name_taken'])
        expect(await living()).toHaveLength(1)
      })

      it('gives the last place once, however many ask at the same time', async () => {
        const results = await Promise.allSettled(Array.from({ length: 8 }, () => create()))
        const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
        expect(refused.map((error) => [error.code, error.retryAfterS])).toEqual(
          Array.from({ length: 5 }, () => ['capacity_exhausted', 5]),
        )
        expect(await living()).toHaveLength(3)
        expect(world.plane.sandboxes.size).toBe(3)
      })

      it.each([
        ['an agent that is not there', { agent: 'ghost' }, CALLER, 'agent_not_found'],
        ['an agent that the key may not use', {}, caller({ agents: ['other'] }), 'agent_not_found'],
        ['an agent of another tenant', {}, caller({ tenant: 'other' }), 'agent_not_found'],
        ['a template that is not there', { template: 'gpu' }, CALLER, 'template_not_found'],
      ] as const)('refuses %s, records that, and nothing happens', async (_what, asked, who, code) => {
        const refused = world.lifecycle.creation.create(who, aSandbox(asked))
        expect(await failure(refused)).toMatchObject({ code })
        expect([await rows(), world.plane.calls.includes('POST /sandboxes')]).toEqual([[], false])
        // In the chain of the caller's own tenant.
        expect(await world.story()).toEqual(who.principal.tenant === 'default' ? ['sandbox.create denied'] : [])
      })

      it('refuses everything while the server starts or stops', async () => {
        world.context.readiness.stop()
        expect(await failure(create())).toMatchObject({ code: 'not_ready' })
      })
    })

    describe('a creation that fails', () => {
      const nothingIsLeft = async () => {
        expect(await living()).toEqual([])
        expect([...world.plane.sandboxes]).toEqual([])
        expect(await agent()).toMatchObject({ state: 'idle' })
      }

      it.each(['start_failed', 'isolation_unavailable', 'permit_rejected'] as const)(
        'by %s tells the caller so, and leaves a row that says why',
        async (code) => {
          world.plane.script('POST /sandboxes', () => Promise.reject(new AirlockError(code)))
          expect(await failure(create())).toMatchObject({ code })
          const [row] = await rows()
          expect(row).toMatchObject({
            state: 'error',
            endReason: 'create_failed',
            error: { code, message: ERRORS[code].message },
          })
          expect(await world.story(row?.id)).toEqual([
            'sandbox.create requested',
            'sandbox.create failed',
            'sandbox.terminate requested',
            'sandbox.terminate done',
          ])
          await nothingIsLeft()
        },
      )

      it('because the evidence cannot be written starts nothing', async () => {
        world.refused = ['sandbox.create requested']
        expect(await failure(create({ name: 'box' }))).toMatchObject({ code: 'evidence_unavailable' })
        expect(world.plane.calls).not.toContain('POST /sandboxes')
        await nothingIsLeft()
        world.refused = []
        expect(await create({ name: 'box' })).toMatchObject({ state: 'active' })
      })

      it('because its last record cannot be written is undone', async () => {
        world.refused = ['sandbox.create done']
        expect(await failure(create())).toMatchObject({ code: 'evidence_unavailable' })
        await nothingIsLeft()
      })

      it('because the data plane died stays stopping until the sweep gets through, and then nothing is left', async () => {
        world.plane.script('POST /sandboxes', async () => {
          void world.plane.die()
          return 'hang-up'
        })
        expect(await failure(create({ name: 'box' }))).toMatchObject({ code: 'data_plane_unavailable' })
        expect(await living()).toMatchObject([{ state: 'stopping', endReason: 'create_failed' }])
        expect(await failure(world.sweep())).toMatchObject({ code: 'data_plane_unavailable' })
        world.plane.script('POST /sandboxes', undefined)
        await world.plane.listen()
        await world.sweep()
        await nothingIsLeft()
        expect(await rows()).toMatchObject([{ state: 'error', error: { code: 'data_plane_unavailable' } }])
        expect(await create({ name: 'box' })).toMatchObject({ state: 'active' })
      })

      it.each(['create.row-written', 'create.recorded', 'create.started', 'create.activated'] as const)(
        'at %s leaves nothing',
        async (where: FailpointName) => {
          world.at = (name) => (name === where ? Promise.reject(new AirlockError('internal', where)) : undefined)
          expect(await failure(create())).toMatchObject({ code: 'internal', message: where })
          await nothingIsLeft()
        },
      )
    })

    describe('getting or creating by name', () => {
      const get = () => world.lifecycle.creation.getOrCreate(CALLER, { ...aSandbox(), name: 'box' })

      it('gives all who ask at once the same sandbox', async () => {
        const sandboxes = await Promise.all([get(), get(), get(), get()])
        expect(new Set(sandboxes.map(({ id }) => id)).size).toBe(1)
        expect(sandboxes.map(({ state }) => state)).toEqual(['active', 'active', 'active', 'active'])
      })

      it('waits for one that is ending, and makes another', async () => {
        const first = await get()
        const ended = world.lifecycle.termination.terminate(first.id, { reason: 'terminated', actor: 'key:test' })
        const second = await get()
        expect(second.id).not.toBe(first.id)
        expect(await ended).toMatchObject({ state: 'stopped' })
      })

      it('counts as a use of the one that is there', async () => {
        const first = await get()
        world.clock.advance(60_000)
        expect(Date.parse((await get()).expiresAt) - Date.parse(first.expiresAt)).toBe(60_000)
      })
    })
  })
