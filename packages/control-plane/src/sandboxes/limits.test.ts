import {
  AirlockError,
  type CreateSandboxBody,
  DEFAULTS,
  type FailpointName,
  type Limits,
  type SomeLimits,
} from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sumHeld } from '../store/budgets.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, CALLER, caller, World } from '../testing/world.ts'

const MIB = 1024 * 1024
const BEFORE: Limits = {
  memoryBytes: DEFAULTS.memoryBytes.default,
  cpus: DEFAULTS.cpus.default,
  pids: DEFAULTS.pids.default,
  diskBytes: DEFAULTS.diskBytes.default,
  inodes: DEFAULTS.inodes.default,
  openFiles: DEFAULTS.openFiles.default,
  cpuSeconds: null,
}

for (const dialect of DIALECTS)
  describe(`limits on ${dialect.name}`, dialect.options, () => {
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
    const change = async (id: string, asked: SomeLimits) =>
      (await world.lifecycle.limitChanges.change(CALLER, id, asked)).limits
    const refusal = async (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error: unknown) => (error instanceof AirlockError ? error.code : error),
      )
    /** What the row says, the node does, and the budgets hold. */
    const seen = async (id: string) => {
      const { memoryBytes, diskBytes, cpuMillis } = await world.store.query((db) =>
        sumHeld(db, { tenant: 'default', agent: 'default' }),
      )
      return {
        row: (await world.store.query((db) => findSandbox(db, id)))?.limits,
        node: world.plane.sandboxes.get(id)?.limits,
        held: { memoryBytes, diskBytes, cpuMillis },
      }
    }
    const all = (limits: Limits) => ({
      row: limits,
      node: limits,
      held: { memoryBytes: limits.memoryBytes, diskBytes: limits.diskBytes, cpuMillis: limits.cpus * 1000 },
    })
    const breakAt = (name: FailpointName) => {
      world.at = async (at) => {
        if (at === name) throw new AirlockError('internal', 'It was killed here.')
      }
    }

    it('are the same in the row, on the node and in the budgets', async () => {
      const id = await create()
      expect(await seen(id)).toEqual(all(BEFORE))
      const more = { ...BEFORE, memoryBytes: 1024 * MIB, cpus: 2, pids: 300, cpuSeconds: 60 }
      expect(await change(id, { memoryBytes: 1024 * MIB, cpus: 2, pids: 300, cpuSeconds: 60 })).toEqual(more)
      expect(await seen(id)).toEqual(all(more))
      const less = { ...more, memoryBytes: 256 * MIB, cpus: 0.5, cpuSeconds: null }
      await change(id, { memoryBytes: 256 * MIB, cpus: 0.5, cpuSeconds: null })
      expect(await seen(id)).toEqual(all(less))
    })

    it('stay where the node refuses, and what was set aside is free again', async () => {
      const id = await create()
      world.plane.script('POST /sandboxes/:id/limits', () => Promise.reject(new AirlockError('limit_in_use')))
      expect(await refusal(change(id, { memoryBytes: 64 * MIB, cpus: 2 }))).toBe('limit_in_use')
      expect(await seen(id)).toEqual(all(BEFORE))
    })

    it('are what the node made of them: a disk that grew has more inodes', async () => {
      const id = await create()
      const grown = { ...BEFORE, diskBytes: 2 * BEFORE.diskBytes, inodes: 2 * BEFORE.inodes }
      world.plane.script('POST /sandboxes/:id/limits', () => grown)
      expect(await change(id, { diskBytes: grown.diskBytes })).toEqual(grown)
    })

    it.each(['limit.reserved', 'limit.applied'] as const)(
      'are those of the row again after a crash at %s',
      async (failpoint) => {
        const id = await create()
        breakAt(failpoint)
        await refusal(change(id, { memoryBytes: 1024 * MIB, pids: 99 }))
        world.at = () => undefined
        await world.restart()
        expect(await seen(id)).toEqual(all(BEFORE))
      },
    )

    it('follow the disk that the node has, which does not shrink', async () => {
      const id = await create()
      const grown = { ...BEFORE, diskBytes: 2 * BEFORE.diskBytes, inodes: 2 * BEFORE.inodes }
      const there = world.plane.sandboxes.get(id)
      if (there) world.plane.sandboxes.set(id, { ...there, limits: { ...grown, pids: 17 } })
      await world.sweep()
      await world.lifecycle.limitChanges.settled()
      expect(await seen(id)).toEqual(all(grown))
    })

    it('are not for those whose sandbox it is not, nor for one that has ended', async () => {
      const id = await create()
      const stranger = caller({ agents: ['other'] })
      expect(await refusal(world.lifecycle.limitChanges.change(stranger, id, { pids: 20 }))).toBe('sandbox_not_found')
      await world.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'system' })
      expect(await refusal(change(id, { pids: 20 }))).toBe('sandbox_ended')
    })

    it('have no more inodes than blocks', async () => {
      const id = await create()
      expect(await refusal(change(id, { inodes: DEFAULTS.inodes.max }))).toBe('invalid_request')
      expect(await refusal(create({ limits: { diskBytes: 16 * MIB, inodes: 5000 } }))).toBe('invalid_request')
    })
  })
