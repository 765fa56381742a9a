import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { dayOf } from './reserve.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { billLiving } from './billing.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, CALLER, World } from '../testing/world.ts'
import { Usage } from './usage.ts'

for (const dialect of DIALECTS)
  describe(`the ledger on ${dialect.name}`, dialect.options, () => {
    let recorder: TestRecorder
    let stores: TestStores
    let world: World
    beforeAll(async () => {
      stores = await dialect.start()
      recorder = await TestRecorder.start()
    }, 60_000)
    afterAll(async () => {
      await recorder?.stop()
      await stores?.stop()
    })
    beforeEach(async () => (world = await World.make(recorder, { place: await stores.make() })))
    afterEach(async () => world.close())

    const create = async () => (await world.lifecycle.creation.create(CALLER, aSandbox({ limits: { cpus: 2 } }))).id
    const end = async (id: string, usage: object | null) => {
      world.plane.script('DELETE /sandboxes/:id', () => ({ existed: true, usage }))
      await world.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'test' })
    }
    const report = async () => (await new Usage(world.context).report(CALLER, {})).items
    const row = (of: object) => ({
      tenant: 'default',
      agent: 'default',
      day: dayOf(world.clock.now()),
      sandboxes: 1,
      dollars: 0,
      ...of,
    })

    it('counts what a sandbox uses once, however often it is looked at', async () => {
      const id = await create()
      const { cpuMs } = world.plane
      for (const [advance, used] of [
        [1000, 300],
        [1000, 300],
        [0, 300],
        [2000, 1700],
      ] as const) {
        world.clock.advance(advance)
        cpuMs.set(id, used)
        await billLiving(world.context)
      }
      expect(await report()).toMatchObject([row({ wallSeconds: 4, cpuSeconds: 1.7, computeSeconds: 1.7 })])
      world.clock.advance(500)
      await end(id, { cpuMs: 1900, memoryPeakBytes: 1 })
      await billLiving(world.context)
      expect(await report()).toMatchObject([row({ wallSeconds: 4.5, cpuSeconds: 1.9, computeSeconds: 1.9 })])
    })

    it('bills a host that was off to its last sign of life, not to the day on which it is found', async () => {
      const ids = [await create(), await create()]
      world.clock.advance(90_000)
      await world.beat()
      world.clock.advance(24 * 3_600_000 - 3_600_000)
      const [gone = '', remains = ''] = ids
      const left = world.plane.sandboxes.get(remains)
      world.plane.sandboxes.delete(gone)
      if (left) world.plane.sandboxes.set(remains, { ...left, state: 'lost', lostReason: 'host_restarted' })
      world.plane.bootId = 'boot-2'
      world.plane.script('DELETE /sandboxes/:id', () => ({ existed: true, usage: null }))
      await world.restart()
      const billed = { sandboxes: 2, wallSeconds: 180, cpuSeconds: 0, computeSeconds: 360 }
      expect(await report()).toMatchObject([billed])
    })

    it('charges all that a sandbox could have used since it was last counted, when that is not known', async () => {
      const id = await create()
      world.clock.advance(1000)
      world.plane.cpuMs.set(id, 100)
      await billLiving(world.context)
      world.clock.advance(3000)
      await end(id, null)
      expect(await report()).toMatchObject([row({ wallSeconds: 4, cpuSeconds: 0.1, computeSeconds: 6.1 })])
    })

    it('charges nothing for what never ran', async () => {
      world.plane.script('POST /sandboxes', () => 'hang-up')
      await expect(create()).rejects.toMatchObject({ code: 'data_plane_unavailable' })
      await world.sweep()
      expect(await report()).toEqual([])
    })
  })
