import { AirlockError, type CreateSandboxBody } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { defaultAgent } from '../identity/first-start.ts'
import { insertAgentIfAbsent } from '../store/agents.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { findSession } from '../store/sessions.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { readableSandbox } from './owned-sandbox.ts'
import { resumeSandbox } from './resume.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { AGENT_STALE_MS, aCommand, aSandbox, aSession, caller, CALLER, World } from '../testing/world.ts'

const MINUTE = 60_000

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

    const create = async (asked: Partial<CreateSandboxBody> = {}) =>
      (await world.lifecycle.creation.create(CALLER, aSandbox(asked))).id
    const pause = (id: string) => world.lifecycle.pauses.pause(CALLER, id)
    const resume = async (id: string) => {
      const sandbox = await readableSandbox(world.context, CALLER, id)
      return resumeSandbox(world.context, CALLER, { sandbox, why: 'request' })
    }
    const run = (id: string) => world.lifecycle.commands.run(CALLER, id, aCommand())
    const row = (id: string) => world.store.query((db) => findSandbox(db, id))
    const node = (id: string) => world.plane.sandboxes.get(id)?.state
    const codeOf = async (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error: unknown) => (error instanceof AirlockError ? error.code : error),
      )

    it('stops the time to live of a sandbox and of its sessions, and both go on with what was left', async () => {
      const id = await create({ ttlMs: 10 * MINUTE })
      const { id: session } = await world.lifecycle.sessions.create(
        CALLER,
        aSession({ sandbox: id, ttlMs: 5 * MINUTE }),
      )
      world.clock.advance(2 * MINUTE)
      await pause(id)
      world.clock.advance(60 * MINUTE)
      await world.sweep()
      expect([(await row(id))?.state, node(id)]).toEqual(['paused', 'paused'])
      await resume(id)
      const now = world.clock.now()
      expect(await row(id)).toMatchObject({ state: 'active', expiresAt: now + 8 * MINUTE, lastActiveAt: now })
      const opened = await world.store.query((db) => findSession(db, session))
      expect(opened).toMatchObject({ state: 'active', expiresAt: now + 3 * MINUTE })
    })

    it('does not let it live past the end of its permit', async () => {
      const id = await create({ ttlMs: 20 * MINUTE, maxLifetimeMs: 30 * MINUTE })
      await pause(id)
      world.clock.advance(25 * MINUTE)
      await resume(id)
      expect(await row(id)).toMatchObject({ expiresAt: world.clock.now() + 5 * MINUTE })
      await pause(id)
      world.clock.advance(5 * MINUTE)
      await world.sweep()
      expect(await row(id)).toMatchObject({ state: 'stopped', endReason: 'max_lifetime' })
    })

    it('ends what is paused for too long, and not before', async () => {
      const id = await create({ maxPausedMs: 10 * MINUTE })
      await pause(id)
      world.clock.advance(10 * MINUTE - 1)
      await world.sweep()
      expect(await row(id)).toMatchObject({ state: 'paused' })
      world.clock.advance(1)
      await world.sweep()
      expect(await row(id)).toMatchObject({ state: 'stopped', endReason: 'paused_too_long' })
    })

    it('keeps its agent, of which nobody expects a sign of life', async () => {
      const agent = { tenant: 'default', agent: 'quiet' }
      await world.store.query((db) => insertAgentIfAbsent(db, { ...defaultAgent(agent.tenant, 1), id: agent.agent }))
      const [still, awake] = [await create({ agent: 'quiet' }), await create({ ttlMs: 24 * 60 * MINUTE })]
      await pause(still)
      world.clock.advance(AGENT_STALE_MS + MINUTE)
      await world.sweep()
      expect([(await row(still))?.state, (await row(awake))?.endReason]).toEqual(['paused', 'idle'])
    })

    it('pauses what is idle where that was asked for, and its next use wakes it', async () => {
      const id = await create({ ttlMs: 60 * MINUTE, idleMs: MINUTE, onIdle: 'pause' })
      world.clock.advance(MINUTE)
      await world.sweep()
      expect(await row(id)).toMatchObject({ state: 'paused', pausedBy: 'idle', pausedAt: world.clock.now() })
      expect(node(id)).toBe('paused')
      await run(id)
      expect([(await row(id))?.state, node(id)]).toEqual(['active', 'running'])
      expect((await world.story(id)).filter((line) => /pause|resume/.test(line))).toEqual([
        'sandbox.pause requested',
        'sandbox.pause done',
        'sandbox.resume requested',
        'sandbox.resume done',
      ])
    })

    it('does not pause what was used while it looked', async () => {
      const id = await create({ ttlMs: 60 * MINUTE, idleMs: MINUTE, onIdle: 'pause' })
      world.clock.advance(MINUTE)
      world.plane.script('GET /sandboxes', async () => {
        await run(id)
        return { sandboxes: [...world.plane.sandboxes.values()] }
      })
      await world.sweep()
      expect(await row(id)).toMatchObject({ state: 'active' })
    })

    it('leaves what somebody paused until somebody resumes it, also where it was idle before', async () => {
      const id = await create({ ttlMs: 60 * MINUTE, idleMs: MINUTE, onIdle: 'pause' })
      world.clock.advance(MINUTE)
      await world.sweep()
      expect(await pause(id)).toMatchObject({ state: 'paused', pausedBy: 'request' })
      expect(await codeOf(run(id))).toBe('sandbox_paused')
      await resume(id)
      await run(id)
    })

    it('refuses to make what should be paused on a node that cannot', async () => {
      world.plane.pause = false
      await world.sweep()
      expect(await codeOf(create({ onIdle: 'pause' }))).toBe('isolation_unavailable')
      await create()
    })

    it('goes by its row after a crash: what stands still goes on, what goes on stands still', async () => {
      const [active, paused] = [await create(), await create()]
      await pause(paused)
      const set = (id: string, state: 'running' | 'paused') => {
        const known = world.plane.sandboxes.get(id)
        if (known) world.plane.sandboxes.set(id, { ...known, state })
      }
      set(active, 'paused')
      set(paused, 'running')
      await world.restart()
      await world.sweep()
      expect([node(active), node(paused)]).toEqual(['running', 'paused'])
      expect([(await row(active))?.state, (await row(paused))?.state]).toEqual(['active', 'paused'])
    })

    it('goes on when its row cannot be written, and is paused again when its going on cannot', async () => {
      const id = await create()
      const free = await stores.fill(world.place)
      expect(await codeOf(pause(id))).not.toBeUndefined()
      expect([(await row(id))?.state, node(id)]).toEqual(['active', 'running'])
      await free()
      await pause(id)
      const freeAgain = await stores.fill(world.place)
      expect(await codeOf(resume(id))).not.toBeUndefined()
      expect([(await row(id))?.state, node(id)]).toEqual(['paused', 'paused'])
      await freeAgain()
    })

    it('does not wait for evidence to pause, and does to resume', async () => {
      const id = await create()
      world.refused = ['sandbox.pause requested', 'sandbox.resume requested']
      await pause(id)
      expect(await codeOf(resume(id))).toBe('evidence_unavailable')
      expect([(await row(id))?.state, node(id)]).toEqual(['paused', 'paused'])
    })

    it('is not found for who it is not theirs', async () => {
      const id = await create()
      const other = caller({ agents: ['other'] })
      expect(await codeOf(world.lifecycle.pauses.pause(other, id))).toBe('sandbox_not_found')
      expect(node(id)).toBe('running')
    })
  })
