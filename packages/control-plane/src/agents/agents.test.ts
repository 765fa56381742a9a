import { type Agent, registerAgentBody, updateAgentBody } from '@airlock/contract'
import * as fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findAgent, findAnyAgent, type StoredAgent } from '../store/agents.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { AGENT_MOVES, connectAgent, idleAgent } from './agent-moves.ts'
import { as, TestRegistry } from '../testing/registry.ts'

const ADMIN = as()
const DEVELOPER = as({ actor: 'key:dev', role: 'developer' })
const BOUND = as({ actor: 'key:bound', role: 'admin', agents: ['coder'] })
const KEY = { tenant: 'acme', agent: 'coder' }
const body = (more: object = {}) => registerAgentBody.parse({ id: 'coder', ...more })

it('the moves of an agent are these', () => {
  expect(AGENT_MOVES).toEqual({
    unknown: ['connected'],
    connected: ['idle', 'suspended'],
    idle: ['connected', 'suspended'],
    suspended: ['connected'],
  })
})

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let registry: TestRegistry
    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => (registry = await TestRegistry.open(await stores.make())))
    afterEach(async () => registry?.store.close())

    const agents = () => registry.who.agents
    const row = () => registry.store.query((db) => findAgent(db, KEY))
    const connect = (generation: number) =>
      registry.store.transaction((db) => connectAgent(db, KEY, { generation, at: registry.now }))
    const idle = () => registry.store.transaction((db) => idleAgent(db, KEY, registry.now))

    describe('registration', () => {
      it('makes an agent that may do nothing yet, and answers the same to whoever repeats it', async () => {
        const made = await agents().register(DEVELOPER, body({ version: '1', labels: { team: 'x' } }))
        const now = new Date(registry.now).toISOString()
        expect(made).toEqual({
          id: 'coder',
          tenant: 'acme',
          state: 'unknown',
          generation: 0,
          approved: false,
          version: '1',
          labels: { team: 'x' },
          metadata: {},
          owner: 'key:dev',
          createdAt: now,
          updatedAt: now,
          lastSeenAt: null,
        } satisfies Agent)
        expect(await agents().register(DEVELOPER, body({ version: '1', labels: { team: 'x' } }))).toEqual(made)
        await expect(connect(1)).rejects.toMatchObject({ code: 'agent_not_approved' })
      })

      it.each([
        ['by another owner', as({ actor: 'key:other' }), {}],
        ['with another version', DEVELOPER, { version: '2' }],
      ] as const)('of an id that is taken is refused %s, and that is evidence', async (_how, who, more) => {
        await agents().register(DEVELOPER, body())
        registry.story()
        await expect(agents().register(who, body(more))).rejects.toMatchObject({ code: 'agent_exists' })
        expect(registry.story()).toEqual(['agent.register denied'])
      })

      it('approves at once only for an admin who is bound to no agent', async () => {
        for (const who of [DEVELOPER, BOUND, as({ role: 'operator' })])
          await expect(agents().register(who, body({ approve: true }))).rejects.toMatchObject({ code: 'forbidden' })
        expect(await row()).toBeUndefined()
        expect((await agents().register(ADMIN, body({ approve: true }))).approved).toBe(true)
      })

      it('is for whoever is bound to an agent only of that one', async () => {
        const bound = as({ role: 'developer', agents: ['coder'] })
        await expect(agents().register(bound, body({ id: 'other' }))).rejects.toMatchObject({ code: 'forbidden' })
        expect((await agents().register(bound, body())).approved).toBe(false)
      })
    })

    describe('states', () => {
      it.each(
        (['unknown', 'connected', 'idle', 'suspended'] as const).flatMap((from) =>
          (['suspend', 'resume'] as const).map((verb) => [from, verb] as const),
        ),
      )('%s: %s is as the table says', async (from, verb) => {
        await reach(from)
        const before = await row()
        const to = verb === 'suspend' ? 'suspended' : 'connected'
        const legal = verb === 'suspend' ? (AGENT_MOVES[from] as readonly string[]).includes(to) : from === 'suspended'
        const registryOfAgents = agents()
        const work =
          verb === 'suspend'
            ? registryOfAgents.suspend(ADMIN, 'coder', {})
            : registryOfAgents.resume(ADMIN, 'coder', {})
        const outcome = await work.then((agent) => agent.state).catch((error: unknown) => error)
        // Nothing of it lives here: resumed, it is connected by nothing.
        if (legal) expect(outcome).toBe(verb === 'suspend' ? 'suspended' : 'idle')
        else {
          expect(outcome).toMatchObject({ code: 'invalid_transition' })
          expect(await row()).toEqual(before)
        }
      })

      it('a suspended agent does not come back by a sandbox, nor by a key that is bound to it', async () => {
        await reach('suspended')
        await expect(connect(2)).rejects.toMatchObject({ code: 'agent_suspended' })
        await expect(agents().resume(BOUND, 'coder', {})).rejects.toMatchObject({ code: 'forbidden' })
        await expect(agents().approve(BOUND, 'coder', {})).rejects.toMatchObject({ code: 'forbidden' })
        expect(await row()).toMatchObject({ state: 'suspended', generation: 1 })
        expect(await agents().resume(ADMIN, 'coder', {})).toMatchObject({ state: 'idle', generation: 2 })
      })

      it('a revoked agent does not come back by a sandbox', async () => {
        await reach('idle')
        expect(await agents().revoke(ADMIN, 'coder', {})).toMatchObject({ approved: false, state: 'idle' })
        await expect(connect(2)).rejects.toMatchObject({ code: 'agent_not_approved' })
        expect(await row()).toMatchObject({ state: 'idle', generation: 1, approved: false })
      })

      it('an agent that never connected is stopped by revoking it, before it has had anything', async () => {
        await reach('unknown')
        await agents().revoke(ADMIN, 'coder', {})
        await expect(connect(1)).rejects.toMatchObject({ code: 'agent_not_approved' })
      })

      it('a stale generation and an illegal move are different errors, and change nothing', async () => {
        await reach('idle')
        const before = await row()
        const stale = { expectedGeneration: 0 }
        for (const verb of ['approve', 'revoke', 'suspend', 'resume', 'remove', 'heartbeat'] as const)
          await expect(agents()[verb](ADMIN, 'coder', stale)).rejects.toMatchObject({ code: 'stale_generation' })
        await expect(agents().resume(ADMIN, 'coder', { expectedGeneration: 1 })).rejects.toMatchObject({
          code: 'invalid_transition',
        })
        expect([await row(), registry.ended]).toEqual([before, []])
      })

      it('of two who connect at once both are in one generation; of two who suspend at once one wins', async () => {
        await reach('idle')
        const both = await Promise.all([connect(2), connect(2)])
        expect(both.map((agent) => agent.generation)).toEqual([2, 2])
        const twice = await Promise.allSettled([
          agents().suspend(ADMIN, 'coder', {}),
          agents().suspend(ADMIN, 'coder', {}),
        ])
        expect(twice.map((one) => one.status).toSorted()).toEqual(['fulfilled', 'rejected'])
      })
    })

    describe('taking power away', () => {
      it.each([
        ['revoke', 'agent_revoked'],
        ['suspend', 'agent_suspended'],
        ['remove', 'agent_deleted'],
      ] as const)('%s ends the sandboxes with a reason of its own and is recorded', async (verb, reason) => {
        await reach('connected')
        registry.story()
        await agents()[verb](ADMIN, 'coder', {})
        expect(registry.ended).toEqual([[KEY, { reason, actor: 'key:admin', requestId: 'req_test' }]])
        expect(registry.story()).toEqual([`agent.${verb === 'remove' ? 'delete' : verb} done`])
      })

      it('leaves the generation of a deleted agent to whoever takes its name, unapproved', async () => {
        await reach('idle')
        await agents().remove(ADMIN, 'coder', {})
        await expect(agents().get(ADMIN, 'coder')).rejects.toMatchObject({ code: 'agent_not_found' })
        expect(await agents().register(as({ actor: 'key:other' }), body())).toMatchObject({
          state: 'unknown',
          generation: 1,
          approved: false,
        })
      })
    })

    describe('the wall', () => {
      it('hides agents of another tenant and agents of others from who is bound, and records the attempt', async () => {
        await reach('idle')
        const before = await row()
        registry.story()
        for (const who of [as({ tenant: 'globex', platform: true }), as({ agents: ['other'] })]) {
          for (const verb of ['approve', 'revoke', 'suspend', 'resume', 'remove', 'heartbeat'] as const)
            await expect(agents()[verb](who, 'coder', {})).rejects.toMatchObject({ code: 'agent_not_found' })
          await expect(agents().get(who, 'coder')).rejects.toMatchObject({ code: 'agent_not_found' })
          const all = { labels: {}, limit: 10 }
          expect(await agents().list(who, all)).toEqual({ items: [], nextCursor: null })
        }
        expect([await row(), registry.ended]).toEqual([before, []])
        expect(registry.story().filter((line) => line.endsWith('denied'))).toHaveLength(12)
      })
    })

    it('lists by state, approval and labels, page by page', async () => {
      for (const id of ['a', 'b', 'c', 'd'])
        await agents().register(ADMIN, body({ id, labels: { odd: id === 'a' || id === 'c' ? 'yes' : 'no' } }))
      await agents().approve(ADMIN, 'c', {})
      const ids = async (query: object) => {
        const page = await agents().list(ADMIN, { labels: {}, limit: 10, ...query })
        return [page.items.map((agent) => agent.id), page.nextCursor]
      }
      expect(await ids({ limit: 3 })).toEqual([['a', 'b', 'c'], 'c'])
      expect(await ids({ limit: 3, cursor: 'c' })).toEqual([['d'], null])
      expect(await ids({ labels: { odd: 'yes' } })).toEqual([['a', 'c'], null])
      expect(await ids({ approved: true })).toEqual([['c'], null])
      expect(await ids({ state: 'idle' })).toEqual([[], null])
    })

    it('fails closed on a row that it cannot read: what is broken is not taken for empty', async () => {
      const place = await stores.make()
      const other = await TestRegistry.open(place)
      try {
        await other.who.agents.register(ADMIN, body({ metadata: { a: 1 } }))
        await stores.run(place, `update agents set metadata = '{"a":' where id = 'coder' returning id`)
        await expect(other.who.agents.get(ADMIN, 'coder')).rejects.toThrow('is not JSON')
      } finally {
        await other.store.close()
      }
    })

    it('keeps signs of life in memory, writes them in batches, and keeps what could not be written', async () => {
      await reach('idle')
      registry.now += 5000
      const seen = new Date(registry.now).toISOString()
      expect((await agents().heartbeat(DEVELOPER, 'coder', {})).lastSeenAt).toBe(seen)
      expect((await row())?.lastSeenAt).not.toBe(registry.now)
      await registry.heartbeats.flush()
      expect((await row())?.lastSeenAt).toBe(registry.now)
    })

    describe('an update', () => {
      const update = (more: object, by = ADMIN) => agents().update(by, 'coder', updateAgentBody.parse(more))

      it('changes what it names, keeps the rest, and keeps the approval', async () => {
        await agents().register(ADMIN, body({ version: '1', labels: { team: 'x' }, metadata: { a: 1 }, approve: true }))
        expect(await update({ version: '2' })).toMatchObject({
          version: '2',
          labels: { team: 'x' },
          metadata: { a: 1 },
          approved: true,
          generation: 0,
        })
        expect(await update({ labels: { team: 'y' } }, DEVELOPER)).toMatchObject({
          version: '2',
          labels: { team: 'y' },
        })
        const page = { labels: { team: 'y' }, limit: 10 }
        expect((await agents().list(ADMIN, page)).items.map(({ id }) => id)).toEqual(['coder'])
        expect(await update({ version: null, metadata: {} })).toMatchObject({
          version: null,
          metadata: {},
          approved: true,
        })
        expect(registry.ended).toEqual([])
      })

      it('is recorded before and after, and says what', async () => {
        await reach('unknown')
        registry.story()
        await update({ version: '2' })
        expect(registry.records.map(({ point, status, payload }) => [point, status, payload?.['version']])).toEqual([
          ['agent.update', 'requested', '2'],
          ['agent.update', 'done', '2'],
        ])
      })

      it('is not for who is bound to the agent, nor for a stale generation, nor across tenants', async () => {
        await reach('connected')
        await expect(update({ labels: {} }, BOUND)).rejects.toMatchObject({ code: 'forbidden' })
        await expect(update({ expectedGeneration: 7 })).rejects.toMatchObject({ code: 'stale_generation' })
        await expect(update({}, as({ tenant: 'globex' }))).rejects.toMatchObject({ code: 'agent_not_found' })
      })

      it('of the version alone takes the approval back and ends its sandboxes, where that is set up', async () => {
        await registry.store.close()
        registry = await TestRegistry.open(await stores.make(), { approvesVersions: true })
        await reach('connected')
        expect(await update({ labels: { team: 'y' } })).toMatchObject({ approved: true })
        expect(registry.ended).toEqual([])
        expect(await update({ version: '2' })).toMatchObject({ approved: false, version: '2' })
        expect(registry.ended).toMatchObject([[KEY, { reason: 'agent_revoked' }]])
        await expect(connect(1)).rejects.toMatchObject({ code: 'agent_not_approved' })
      })
    })

    it('property: no sequence of operations leaves the table of moves or lowers a generation', async () => {
      const verbs = ['register', 'approve', 'revoke', 'suspend', 'resume', 'remove', 'connect', 'idle'] as const
      const who = fc.constantFrom(ADMIN, ADMIN, ADMIN, DEVELOPER, BOUND, as({ tenant: 'globex' }))
      const step = fc.record({ verb: fc.constantFrom(...verbs), who, off: fc.constantFrom(undefined, 0, 1) })
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 10 }),
          async (rounds) => {
            await registry.store.close()
            registry = await TestRegistry.open(await stores.make())
            let before: StoredAgent | undefined
            for (const round of rounds) {
              const now = before
              const outcomes = await Promise.allSettled(round.map((one) => perform(one, now)))
              for (const outcome of outcomes) if (outcome.status === 'rejected') expectRefusal(outcome.reason)
              const after = await registry.store.query((db) => findAnyAgent(db, KEY))
              expectLegal(before, after, round)
              before = after
            }
          },
        ),
        { numRuns: dialect.name === 'SQLite' ? 60 : 25 },
      )
    })

    interface Step {
      readonly verb: 'register' | 'approve' | 'revoke' | 'suspend' | 'resume' | 'remove' | 'connect' | 'idle'
      readonly who: typeof ADMIN
      readonly off: number | undefined
    }

    async function perform({ verb, who, off }: Step, now: StoredAgent | undefined): Promise<unknown> {
      const expected = off === undefined || !now ? {} : { expectedGeneration: now.generation + off }
      const target = now?.state === 'connected' ? now.generation : (now?.generation ?? 0) + 1
      if (verb === 'register') return agents().register(who, body())
      if (verb === 'connect') return connect(target)
      return verb === 'idle' ? idle() : agents()[verb](who, 'coder', expected)
    }

    function expectRefusal(reason: unknown): void {
      const codes =
        'agent_not_found agent_exists agent_not_approved agent_suspended stale_generation invalid_transition forbidden'
      expect(codes.split(' ')).toContain(reason instanceof Error && 'code' in reason ? reason.code : reason)
    }

    function expectLegal(from: StoredAgent | undefined, to: StoredAgent | undefined, round: readonly Step[]): void {
      if (!to) return expect(from).toBeUndefined()
      const before = from ?? { state: 'unknown', generation: 0 }
      expect(to.generation).toBeGreaterThanOrEqual(before.generation)
      const [only] = round
      if (round.length > 1 || !only) return
      // New, or deleted: a name is taken up in the generation in which it was left, and nothing connects without one.
      if (from?.deletedAt !== null) {
        expect(to.generation).toBe(before.generation)
        return expect(['unknown', 'idle', before.state]).toContain(to.state)
      }
      if (to.state === from.state) return expect(to.generation).toBe(from.generation)
      if (from.state === 'suspended') {
        // Through `connected`, and on to `idle`, for nothing of it lives.
        expect([only.verb, to.state]).toEqual(['resume', 'idle'])
        // Roles are for the table of routes; who is bound to it, or is of another tenant, resumes it never.
        expect([ADMIN, DEVELOPER]).toContain(only.who)
        return expect(to.generation).toBe(from.generation + 1)
      }
      expect(AGENT_MOVES[from.state]).toContain(to.state)
      expect(to.generation).toBe(from.generation + (to.state === 'connected' ? 1 : 0))
      if (only.verb === 'connect') expect(from.approved).toBe(true)
    }

    async function reach(state: StoredAgent['state']): Promise<void> {
      await agents().register(ADMIN, body({ approve: true }))
      if (state === 'unknown') return
      await connect(1)
      if (state === 'idle') await idle()
      if (state === 'suspended') await agents().suspend(ADMIN, 'coder', {})
      registry.ended.splice(0)
    }
  })
