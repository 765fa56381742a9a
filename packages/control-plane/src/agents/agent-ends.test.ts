import { registerAgentBody } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findAgent } from '../store/agents.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { AGENT_STALE_MS, aSandbox, caller, CALLER, World } from '../testing/world.ts'
import { createRegistry, type Registry } from '../app/registry.ts'

const ADMIN = caller({ role: 'admin', actor: 'key:admin' })
const KEY = { tenant: 'default', agent: 'coder' }

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
      await who.agents.register(ADMIN, registerAgentBody.parse({ id: 'coder', approve: true }))
    })
    afterEach(() => world?.close())

    const create = (agent = 'coder') => world.lifecycle.creation.create(CALLER, aSandbox({ agent }))
    const agent = () => world.store.query((db) => findAgent(db, KEY))
    const sandbox = (id: string) => world.store.query((db) => findSandbox(db, id))

    it('an agent is connected while a sandbox lives and idle after the last, whoever ends it', async () => {
      expect(await agent()).toMatchObject({ state: 'unknown', generation: 0 })
      const [one, two] = [await create(), await create()]
      expect(await agent()).toMatchObject({ state: 'connected', generation: 1 })
      await world.lifecycle.termination.terminate(one.id, { reason: 'ttl', actor: 'system' })
      expect(await agent()).toMatchObject({ state: 'connected', generation: 1 })
      await world.lifecycle.termination.terminate(two.id, { reason: 'guest_lost', actor: 'system' })
      expect(await agent()).toMatchObject({ state: 'idle', generation: 1 })
    })

    it('a creation that fails leaves the agent as it was, and it can go on', async () => {
      const before = await agent()
      world.refused = ['sandbox.create requested']
      await expect(create()).rejects.toMatchObject({ code: 'evidence_unavailable' })
      expect(await agent()).toEqual(before)
      world.refused = []
      expect((await create()).generation).toBe(1)
    })

    it.each([
      ['revoke', 'agent_revoked', 'idle', 'agent_not_approved'],
      ['suspend', 'agent_suspended', 'suspended', 'agent_suspended'],
    ] as const)(
      '%s ends its sandboxes, and only its own, and lets it have no other',
      async (verb, reason, state, code) => {
        const [mine, other] = [await create(), await create('default')]
        await who.agents[verb](ADMIN, 'coder', {})
        expect(await sandbox(mine.id)).toMatchObject({ state: 'stopped', endReason: reason })
        expect((await sandbox(other.id))?.state).toBe('active')
        expect(await agent()).toMatchObject({ state, generation: 1 })
        await expect(create()).rejects.toMatchObject({ code })
        expect(await agent()).toMatchObject({ state, generation: 1 })
        expect((await world.story()).slice(-4)).toEqual([
          `agent.${verb} done`,
          'sandbox.terminate requested',
          'sandbox.terminate done',
          'sandbox.create denied',
        ])
      },
    )

    it('delete ends its sandboxes, and its generation stays when the name is taken again', async () => {
      const mine = await create()
      await who.agents.remove(ADMIN, 'coder', {})
      expect(await sandbox(mine.id)).toMatchObject({ state: 'stopped', endReason: 'agent_deleted' })
      await expect(create()).rejects.toMatchObject({ code: 'agent_not_found' })
      const again = await who.agents.register(CALLER, registerAgentBody.parse({ id: 'coder' }))
      expect(again).toMatchObject({ state: 'unknown', generation: 1, approved: false })
    })

    it.each([
      ['revoke', 'agent_not_approved'],
      ['suspend', 'agent_suspended'],
      ['remove', 'agent_not_found'],
    ] as const)('%s while a sandbox is being made: it does not become active', async (verb, code) => {
      await world.lifecycle.termination.terminate((await create()).id, { reason: 'ttl', actor: 'system' })
      const words = createRegistry(world.context, { ...world.lifecycle, agentEnds: { endSandboxesOf: async () => {} } })
      world.at = async (name) => {
        if (name === 'create.started') await words.agents[verb](ADMIN, 'coder', {})
      }
      await expect(create()).rejects.toMatchObject({ code })
      expect(world.plane.sandboxes.size).toBe(0)
      expect((await agent())?.generation ?? 1).toBe(1)
    })

    it('what a crash left between the word and the deed is ended by the next look', async () => {
      const mine = await create()
      const words = createRegistry(world.context, { ...world.lifecycle, agentEnds: { endSandboxesOf: async () => {} } })
      await words.agents.suspend(ADMIN, 'coder', {})
      await world.restart()
      expect((await sandbox(mine.id))?.state).toBe('active')
      await world.sweep()
      expect(await sandbox(mine.id)).toMatchObject({ state: 'stopped', endReason: 'agent_suspended' })
      expect(await agent()).toMatchObject({ state: 'suspended' })
    })

    it('what is on another node is ended there, by its own look', async () => {
      const there = await World.make(recorder, { place: world.place, node: 'there' })
      try {
        const theirs = await there.lifecycle.creation.create(CALLER, aSandbox({ agent: 'coder' }))
        await who.agents.suspend(ADMIN, 'coder', {})
        await world.sweep()
        expect((await sandbox(theirs.id))?.state).toBe('active')
        await there.sweep()
        expect(await sandbox(theirs.id)).toMatchObject({ state: 'stopped', endReason: 'agent_suspended' })
        expect(there.plane.sandboxes.size).toBe(0)
      } finally {
        await there.close()
      }
    })

    it('an agent of which nothing is heard is stale: its sandboxes end, and it is idle', async () => {
      const body = aSandbox({ agent: 'coder', ttlMs: 24 * 3_600_000, idleMs: 24 * 3_600_000 })
      const mine = await world.lifecycle.creation.create(CALLER, body)
      world.clock.advance(AGENT_STALE_MS - 1)
      await world.sweep()
      expect((await sandbox(mine.id))?.state).toBe('active')
      world.clock.advance(2)
      await world.sweep()
      expect(await sandbox(mine.id)).toMatchObject({ state: 'stopped', endReason: 'agent_stale' })
      expect(await agent()).toMatchObject({ state: 'idle', generation: 1, approved: true })
      expect(await world.story()).toContain('agent.stale done')
    })

    it('a use of a sandbox, a sign of life and a call of its own key keep an agent; default needs none', async () => {
      const body = { ttlMs: 24 * 3_600_000, idleMs: 24 * 3_600_000 }
      const mine = await world.lifecycle.creation.create(CALLER, aSandbox({ agent: 'coder', ...body }))
      const other = await world.lifecycle.creation.create(CALLER, aSandbox(body))
      const live = async () => [(await sandbox(mine.id))?.state, (await sandbox(other.id))?.state]
      const signs = [
        async () => world.lifecycle.activity.touch((await sandbox(mine.id)) ?? expect.unreachable()),
        async () => who.agents.heartbeat(CALLER, 'coder', {}),
        async () => world.context.heartbeats.beatAll({ tenant: 'default', agents: ['coder'] }),
      ]
      for (const sign of signs) {
        world.clock.advance(AGENT_STALE_MS - 10)
        await sign()
        world.clock.advance(20)
        await world.sweep()
        expect(await live()).toEqual(['active', 'active'])
        await world.context.heartbeats.flush()
      }
      world.clock.advance(AGENT_STALE_MS + 1)
      await world.sweep()
      expect(await live()).toEqual(['stopped', 'active'])
    })
  })
