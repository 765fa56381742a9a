import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { TestPostgres } from '../../../../test/support/postgres.ts'
import { requires } from '../../../../test/support/requires.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { UNTOLD } from '../testing/scripted-data-plane.ts'
import { aSandbox, CALLER, World } from '../testing/world.ts'
import { Metrics } from './metrics.ts'
import { Monitor } from './monitor.ts'
import type { Judge } from './observed.ts'

const NOTHING_RAISED: Judge = { judge: () => [], of: () => ({ alerts: [], raised: { warning: 0, critical: 0 } }) }

describe('metrics of two nodes that share a store', requires('postgres'), () => {
  let postgres: TestPostgres
  let recorders: readonly TestRecorder[]
  let place: { readonly url: string }
  beforeAll(async () => {
    postgres = await TestPostgres.start()
    recorders = [await TestRecorder.start(), await TestRecorder.start()]
  }, 60_000)
  afterAll(async () => {
    for (const recorder of recorders ?? []) await recorder.stop()
    await postgres?.stop()
  })

  function watch(world: World) {
    const monitor = new Monitor(world.context, { judge: NOTHING_RAISED, everyMs: 5000 })
    return { monitor, metrics: new Metrics(world.context, { monitor, judge: NOTHING_RAISED }) }
  }

  async function makeNode(node: string, index: number): Promise<World> {
    const [recorder] = recorders.slice(index)
    if (!recorder) throw new TypeError('there is one for each node')
    const world = await World.make(recorder, { place, node })
    onTestFinished(async () => world.close())
    return world
  }

  it('are of the node that is asked, but for the history that is written', async () => {
    place = { url: await postgres.createDatabase() }
    const [one, two] = [await makeNode('one', 0), await makeNode('two', 1)]
    const [here, there] = [watch(one), watch(two)]
    const { id } = await one.lifecycle.creation.create(CALLER, aSandbox())
    one.plane.script('GET /metrics', () => ({ samples: [{ ...UNTOLD, id, at: one.clock.now(), pids: 5 }], tookMs: 1 }))
    await here.monitor.look()
    await there.monitor.look()
    const query = { resolution: '1m' } as const
    expect(await here.metrics.sandbox(CALLER, id, query)).toMatchObject({ now: { pids: 5 }, history: [{ pids: 5 }] })
    expect(await there.metrics.sandbox(CALLER, id, query)).toMatchObject({ now: null, history: [] })
    await here.monitor.stop()
    expect(await there.metrics.sandbox(CALLER, id, query)).toMatchObject({ now: null, history: [{ pids: 5 }] })
    expect((await there.metrics.tenant(CALLER, {})).sandboxes).toEqual([])
    expect((await there.metrics.agent(CALLER, 'default', query)).history).toEqual([])
    const never = new AbortController().signal
    await expect(there.metrics.follow(CALLER, id, never)).rejects.toMatchObject({ code: 'wrong_node' })
    await there.monitor.stop()
  })
})
