import { AirlockError } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findAgent } from '../store/agents.ts'
import { findCommand } from '../store/commands.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { endAll } from '../sweep/shutdown.ts'
import { TestRecorder } from '../testing/recorder.ts'
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

    const create = () => world.lifecycle.creation.create(CALLER, aSandbox())
    const END = { reason: 'terminated', actor: 'key:test', requestId: 'req_end' } as const
    const end = (id: string) => world.lifecycle.termination.terminate(id, END)
    const failure = async (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error: unknown) => error,
      )
    const row = (id: string) => world.store.query((db) => findSandbox(db, id))
    const deletes = (id: string) => world.plane.calls.filter((call) => call === `DELETE /sandboxes/${id}`).length

    describe('ending a sandbox', () => {
      it('destroys it, writes why, and records its usage', async () => {
        const { id } = await create()
        world.clock.advance(2000)
        const ended = await end(id)
        expect(ended).toMatchObject({
          state: 'stopped',
          endReason: 'terminated',
          error: null,
          endedAt: world.clock.now(),
        })
        expect(world.plane.sandboxes.has(id)).toBe(false)
        const [requested, done] = (await world.evidence(id)).slice(2)
        expect(requested).toMatchObject({ status: 'requested', actor: 'key:test' })
        expect(requested?.payload).toEqual({ reason: 'terminated', requestId: 'req_end' })
        expect(done?.payload).toEqual({
          reason: 'terminated',
          requestId: 'req_end',
          livedMs: 2000,
          usage: { cpuMs: 7, memoryPeakBytes: 4096 },
        })
      })

      it('again answers the same and does nothing', async () => {
        const { id } = await create()
        const ended = await end(id)
        expect(await end(id)).toEqual(ended)
        expect(deletes(id)).toBe(1)
        expect(await world.story(id)).toHaveLength(4)
      })

      it('many times at once happens once', async () => {
        const { id } = await create()
        const ends = await Promise.all([end(id), end(id), end(id)])
        expect(ends.map(({ state }) => state)).toEqual(['stopped', 'stopped', 'stopped'])
        expect(deletes(id)).toBe(1)
      })

      it('waits for a creation that is under way', async () => {
        let id = ''
        let ended: Promise<unknown> | undefined
        world.plane.script('POST /sandboxes', undefined)
        world.at = async (name) => {
          if (name !== 'create.started') return
          id = [...world.plane.sandboxes.keys()][0] ?? ''
          ended = end(id)
        }
        expect(await create()).toMatchObject({ state: 'active' })
        expect(await ended).toMatchObject({ state: 'stopped' })
        expect(world.plane.sandboxes.size).toBe(0)
      })

      it('takes its running commands along', async () => {
        const { id } = await create()
        const { id: command } = (await world.lifecycle.commands.run(CALLER, id, aCommand())).noun
        const waiting = world.lifecycle.commands.wait(CALLER, { sandbox: id, command }, new AbortController().signal)
        await end(id)
        expect(await waiting).toMatchObject({ state: 'lost', exitCode: null })
        expect(await world.store.query((db) => findCommand(db, { sandbox: id, command }))).toMatchObject({
          state: 'lost',
        })
        expect((await world.story(id)).filter((line) => line.startsWith('command'))).toEqual([
          'command.run requested',
          'command.run failed',
        ])
      })

      it('ends abnormally when it broke down', async () => {
        const { id } = await create()
        const ended = await world.lifecycle.termination.terminate(id, { reason: 'guest_lost', actor: 'system' })
        expect(ended).toMatchObject({
          state: 'error',
          endReason: 'guest_lost',
          error: { code: 'guest_lost', message: 'The sandbox broke down.' },
        })
      })
    })

    describe('an end that cannot be finished', () => {
      it('because the data plane is away stays stopping, and the sweep ends it for the first reason', async () => {
        const { id } = await create()
        await world.plane.die()
        expect(await failure(end(id))).toMatchObject({ code: 'data_plane_unavailable' })
        expect(await row(id)).toMatchObject({ state: 'stopping', endReason: 'terminated', endedAt: null })
        await world.plane.listen()
        await world.sweep()
        expect(await row(id)).toMatchObject({ state: 'stopped', endReason: 'terminated' })
        expect(await world.story(id)).toEqual([
          'sandbox.create requested',
          'sandbox.create done',
          'sandbox.terminate requested',
          'sandbox.terminate done',
        ])
      })

      it('because a process would not die tells the caller, and is tried again', async () => {
        const { id } = await create()
        world.plane.script('DELETE /sandboxes/:id', () => Promise.reject(new AirlockError('internal', 'it lives')))
        expect(await failure(end(id))).toMatchObject({ code: 'internal', message: 'it lives' })
        world.plane.script('DELETE /sandboxes/:id', undefined)
        await world.sweep()
        expect(await row(id)).toMatchObject({ state: 'stopped' })
      })

      it('because nothing can be written destroys the sandbox all the same, and the sweep writes the row', async () => {
        const { id } = await create()
        const free = await stores.fill(world.place)
        expect(await end(id)).toMatchObject({ state: 'stopped', endReason: 'terminated' })
        expect(world.plane.sandboxes.has(id)).toBe(false)
        expect(await row(id)).toMatchObject({ state: 'active' })
        await world.sweep()
        expect(await row(id)).toMatchObject({ state: 'active' })
        await free()
        await world.sweep()
        expect(await row(id)).toMatchObject({ state: 'stopped', endReason: 'terminated' })
        expect([deletes(id), await world.story(id)]).toEqual([
          1,
          ['sandbox.create requested', 'sandbox.create done', 'sandbox.terminate requested', 'sandbox.terminate done'],
        ])
      })

      it('because nothing can be written owes its record until that is acknowledged, though it was sent before', async () => {
        const { id } = await create()
        const free = await stores.fill(world.place)
        await end(id)
        await free()
        await world.sweep()
        expect(await row(id)).toMatchObject({ state: 'stopped', recorded: false })
        await world.context.audit.flush(10_000)
        await world.lifecycle.receipts.flush(async () => new Set(['default']))
        expect(await row(id)).toMatchObject({ state: 'stopped', recorded: true })
        expect((await world.story(id)).filter((line) => line === 'sandbox.terminate done')).toHaveLength(1)
      })

      it('because we were killed after its row was written has its record after the next start', async () => {
        const { id } = await create()
        world.at = (name) => (name === 'terminate.row-written' ? new Promise(() => {}) : undefined)
        void end(id)
        await expect.poll(() => row(id)).toMatchObject({ state: 'stopped' })
        world.at = () => {}
        await world.restart()
        await world.lifecycle.receipts.payOwed()
        expect((await world.story(id)).slice(2)).toEqual(['sandbox.terminate requested', 'sandbox.terminate done'])
        await world.lifecycle.receipts.payOwed()
        expect(await world.story(id)).toHaveLength(4)
      })
    })

    it('ends all that live when the server ends, those that are being made too', async () => {
      await Promise.all(Array.from({ length: 10 }, create))
      let ending: Promise<void> | undefined
      world.at = (name) => {
        if (name === 'create.admitted') ending = endAll(world.context, world.lifecycle, AbortSignal.timeout(20_000))
      }
      const late = create()
      await late
      await ending
      expect(await row((await late).id)).toMatchObject({ state: 'stopped', endReason: 'shutdown' })
      expect(world.plane.sandboxes.size).toBe(0)
      expect(await world.store.query((db) => findAgent(db, { tenant: 'default', agent: 'default' }))).toMatchObject({
        state: 'idle',
      })
    })
  })
