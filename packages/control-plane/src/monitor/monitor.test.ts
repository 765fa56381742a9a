import { DatabaseSync } from 'node:sqlite'
import { AirlockError, type MetricEvent, type NodeSample } from '@airlock/contract'
import { createLog, deadline, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestRecorder } from '../testing/recorder.ts'
import { UNTOLD } from '../testing/scripted-data-plane.ts'
import { aSandbox, CALLER, caller, World } from '../testing/world.ts'
import { Metrics } from './metrics.ts'
import { Monitor } from './monitor.ts'
import type { Judge, Observed } from './observed.ts'

const SOON = { resolution: '5s' } as const

/** Says what it is told to say, and remembers what it saw. */
class TestJudge implements Judge {
  readonly rounds: (readonly Observed[])[] = []
  says: readonly MetricEvent[] = []
  alerts: ReturnType<Judge['of']>['alerts'] = []

  judge(round: readonly Observed[]): readonly MetricEvent[] {
    this.rounds.push(round)
    return this.says
  }

  of(): ReturnType<Judge['of']> {
    return { alerts: this.alerts, raised: { warning: this.alerts.length, critical: 0 } }
  }
}

let recorder: TestRecorder
let world: World
let judge: TestJudge
let monitor: Monitor
let metrics: Metrics
/** What the kernel says of each sandbox. */
let counted: Map<string, Partial<NodeSample>>

beforeAll(async () => {
  recorder = await TestRecorder.start()
}, 60_000)
afterAll(async () => recorder?.stop())
beforeEach(async () => {
  world = await World.make(recorder)
  counted = new Map()
  world.plane.script('GET /metrics', () => ({
    samples: [...counted].map(([id, said]) => ({ ...UNTOLD, id, at: world.clock.now(), ...said })),
    tookMs: 1,
  }))
  watch()
})
afterEach(async () => {
  await monitor.stop()
  await world.close()
})

function watch(): void {
  judge = new TestJudge()
  monitor = new Monitor(world.context, { judge, everyMs: 5000 })
  metrics = new Metrics(world.context, { monitor, judge })
}

async function create(asked: Parameters<typeof aSandbox>[0] = {}): Promise<string> {
  return (await world.lifecycle.creation.create(CALLER, aSandbox(asked))).id
}

async function end(id: string): Promise<void> {
  await world.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'test' })
  counted.delete(id)
}

async function round(said: ReadonlyMap<string, Partial<NodeSample>> = new Map()): Promise<void> {
  world.clock.advance(5000)
  for (const [id, one] of said) counted.set(id, one)
  await monitor.look()
}

describe('a round of the monitor', () => {
  it('tells what a sandbox uses, with processors since the round before', async () => {
    const id = await create()
    await round(new Map([[id, { cpuMs: 100, memoryBytes: 1000, pids: 2 }]]))
    const { now: first } = await metrics.sandbox(CALLER, id, SOON)
    expect(first).toMatchObject({ cpuPercent: null, cpuMs: 100, memoryBytes: 1000, pids: 2 })
    await round(new Map([[id, { cpuMs: 3850, memoryBytes: 3000, pids: 4 }]]))
    const { now, history, ...rest } = await metrics.sandbox(CALLER, id, SOON)
    expect(now).toMatchObject({ at: new Date(world.clock.now()).toISOString(), cpuPercent: 75, cpuMs: 3850 })
    expect(rest).toMatchObject({ sandbox: id, agent: 'default', state: 'active', alerts: [] })
    expect(history.map(({ spanMs, cpuPercent, memoryBytes }) => [spanMs, cpuPercent, memoryBytes])).toEqual([
      [0, null, 1000],
      [5000, 75, 3000],
    ])
  })

  it('hands all that lives to the judge, with the sample before', async () => {
    const one = await create()
    await round(new Map([[one, { pids: 1 }]]))
    const two = await create()
    await round(new Map([[two, { pids: 2 }]]))
    expect(
      judge.rounds.map((seen) => seen.map(({ row, sample, before }) => [row.id, sample.pids, before?.pids])),
    ).toEqual([
      [[one, 1, undefined]],
      [
        [one, 1, 1],
        [two, 2, undefined],
      ],
    ])
  })

  it('has nothing to say of now when the data plane was silent for long', async () => {
    const id = await create()
    await round(new Map([[id, { pids: 1 }]]))
    world.plane.script('GET /metrics', () => 'hang-up')
    await expect(round()).rejects.toMatchObject({ code: 'data_plane_unavailable' })
    expect((await metrics.sandbox(CALLER, id, SOON)).now).toMatchObject({ pids: 1 })
    world.clock.advance(60_000)
    expect((await metrics.sandbox(CALLER, id, SOON)).now).toBeNull()
    expect((await metrics.tenant(CALLER, {})).total).toMatchObject({ sandboxes: 1, pids: 0 })
  })

  it('leaves the history of what has ended, and of the time before a restart', async () => {
    const id = await create()
    await round(new Map([[id, { pids: 7 }]]))
    await end(id)
    await round()
    await monitor.stop()
    await world.restart()
    watch()
    expect(await metrics.sandbox(CALLER, id, SOON)).toMatchObject({
      state: 'stopped',
      now: null,
      history: [{ pids: 7 }],
    })
    const agent = await metrics.agent(CALLER, 'default', { resolution: '1m' })
    expect(agent).toMatchObject({ total: { sandboxes: 0 }, sandboxes: [], history: [{ samples: 1, pids: 7 }] })
  })
})

describe('alerts', () => {
  it('are counted when they are raised, and not when they are eased', async () => {
    const id = await create()
    const alertSince = (level: 'warning' | 'critical', since: number): MetricEvent => ({
      event: 'alert',
      alert: {
        sandbox: id,
        agent: 'default',
        resource: 'cpu',
        level,
        percent: 90,
        threshold: 70,
        since: new Date(since).toISOString(),
      },
    })
    const from = world.clock.now()
    for (const [level, since] of [
      ['warning', from + 5000],
      ['critical', from + 10_000],
      ['warning', from + 5000],
    ] as const) {
      judge.says = [alertSince(level, since)]
      await round(new Map([[id, { pids: 1 }]]))
    }
    expect(metrics.overview().alerts).toEqual([
      { resource: 'cpu', level: 'warning', count: 1 },
      { resource: 'cpu', level: 'critical', count: 1 },
    ])
  })
})

describe('a store that takes nothing', () => {
  it('holds up nothing, and gets what it missed', async () => {
    const id = await create()
    const rename = async (from: string, to: string) => {
      if (!('file' in world.place)) throw new TypeError('not a file')
      const database = new DatabaseSync(world.place.file)
      database.exec(`alter table ${from} rename to ${to}`)
      database.close()
    }
    await round(new Map([[id, { pids: 1 }]]))
    await rename('metric_points', 'hidden')
    world.clock.advance(60_000)
    await round(new Map([[id, { pids: 2 }]]))
    expect(judge.rounds.length).toBe(2)
    expect((await metrics.sandbox(CALLER, id, SOON)).now).toMatchObject({ pids: 2 })
    await rename('hidden', 'metric_points')
    await round(new Map([[id, { pids: 3 }]]))
    await monitor.stop()
    watch()
    const { history } = await metrics.sandbox(CALLER, id, SOON)
    expect(history.map(({ pids }) => pids)).toEqual([1, 2, 3])
  })
})

describe('the loop', () => {
  it('never has two rounds at once, however long one takes', async () => {
    let [running, most, rounds] = [0, 0, 0]
    world.plane.script('GET /metrics', async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 60))
      running -= 1
      rounds += 1
      return { samples: [], tookMs: 1 }
    })
    monitor = new Monitor(world.context, { judge, everyMs: 1 })
    monitor.start()
    await waitFor(() => (rounds >= 3 ? true : undefined), { signal: deadline(100_000), everyMs: 20 })
    expect(most).toBe(1)
  })

  it('does not wait long for a data plane that hangs when it is stopped', async () => {
    const asked = Promise.withResolvers<undefined>()
    const released = Promise.withResolvers<undefined>()
    world.plane.script('GET /metrics', async () => {
      asked.resolve(undefined)
      await released.promise
      return { samples: [], tookMs: 1 }
    })
    monitor.start()
    await asked.promise
    await monitor.stop()
    released.resolve(undefined)
  })

  it('skips rounds that fail, and logs only when that changes', async () => {
    const logged: string[] = []
    const log = createLog({ process: 'control-plane', level: 'info', write: (line) => void logged.push(line) })
    let [calls, isBroken] = [0, true]
    world.plane.script('GET /metrics', () => {
      calls += 1
      if (isBroken) throw new AirlockError('internal')
      return { samples: [], tookMs: 1 }
    })
    monitor = new Monitor({ ...world.context, log }, { judge, everyMs: 1 })
    monitor.start()
    const untilCalls = async (count: number) =>
      waitFor(() => (calls >= count ? true : undefined), { signal: deadline(100_000), everyMs: 10 })
    await untilCalls(3)
    isBroken = false
    await untilCalls(calls + 3)
    isBroken = true
    await untilCalls(calls + 3)
    await monitor.stop()
    expect(logged.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual([
      'the monitor does not see',
      'the monitor sees again',
      'the monitor does not see',
    ])
    expect(monitor.counts.rounds.failed).toBeGreaterThanOrEqual(5)
  })
})

describe('who follows a sandbox', () => {
  const take = async (events: AsyncIterator<MetricEvent>, count: number) => {
    const taken: MetricEvent[] = []
    while (taken.length < count) {
      const next = await events.next()
      if (next.done === true) break
      taken.push(next.value)
    }
    return taken
  }
  const follow = async (id: string, signal = new AbortController().signal) =>
    (await metrics.follow(CALLER, id, signal))[Symbol.asyncIterator]()

  it('hears how things stand, each sample, alerts, and the end', async () => {
    const id = await create()
    const other = await create()
    await round(
      new Map([
        [id, { pids: 1 }],
        [other, { pids: 9 }],
      ]),
    )
    const events = await follow(id)
    const cleared = { event: 'cleared', sandbox: id, resource: 'cpu', at: new Date(0).toISOString() } as const
    judge.says = [cleared]
    await round(new Map([[id, { pids: 2 }]]))
    judge.says = []
    await end(id)
    await round()
    expect(await take(events, 10)).toMatchObject([
      { event: 'sample', sandbox: id, sample: { pids: 1 } },
      { event: 'sample', sandbox: id, sample: { pids: 2 } },
      cleared,
      { event: 'ended', sandbox: id },
    ])
    expect(await take(await follow(id), 10)).toEqual([{ event: 'ended', sandbox: id }])
  })

  it('is told nothing of an end that was not, when the sandbox is younger than the round', async () => {
    const asked = Promise.withResolvers<undefined>()
    const answered = Promise.withResolvers<undefined>()
    world.plane.script('GET /metrics', async () => {
      asked.resolve(undefined)
      await answered.promise
      return { samples: [], tookMs: 1 }
    })
    const looking = monitor.look()
    await asked.promise
    const id = await create()
    const events = await follow(id)
    answered.resolve(undefined)
    await looking
    world.plane.script('GET /metrics', () => ({
      samples: [{ ...UNTOLD, id, at: world.clock.now(), pids: 3 }],
      tookMs: 1,
    }))
    await monitor.look()
    expect(await take(events, 1)).toMatchObject([{ event: 'sample', sample: { pids: 3 } }])
  })

  it('has a place until it goes, and no more than 64 of a tenant', async () => {
    const id = await create()
    const gone = new AbortController()
    for (let i = 0; i < 64; i++) await follow(id, gone.signal)
    await expect(follow(id)).rejects.toMatchObject({ code: 'too_many_streams' })
    gone.abort()
    await follow(id)
  })
})

describe('who sees what', () => {
  it('is its own tenant, and the agents it is bound to', async () => {
    const id = await create()
    await round(new Map([[id, { cpuMs: 0, memoryBytes: 1000, pids: 2, diskBytes: 4096 }]]))
    await round(new Map([[id, { cpuMs: 2500, memoryBytes: 1000, pids: 2, diskBytes: 4096 }]]))
    const used = { sandboxes: 1, cpuPercent: 50, memoryBytes: 1000, pids: 2, diskBytes: 4096 }
    const none = { sandboxes: 0, cpuPercent: 0, memoryBytes: 0, pids: 0, diskBytes: 0 }
    const bound = (agent: string) => caller({ agents: [agent] })
    for (const [who, agent, total] of [
      [CALLER, undefined, used],
      [CALLER, 'default', used],
      [CALLER, 'another', none],
      [bound('default'), undefined, used],
      [bound('another'), undefined, none],
      [bound('another'), 'default', none],
      [caller({ tenant: 'globex' }), undefined, none],
    ] as const)
      expect((await metrics.tenant(who, { agent })).total).toMatchObject(total)
    for (const who of [bound('another'), caller({ tenant: 'globex' })]) {
      await expect(metrics.sandbox(who, id, SOON)).rejects.toMatchObject({ code: 'sandbox_not_found' })
      await expect(metrics.follow(who, id, AbortSignal.abort())).rejects.toMatchObject({ code: 'sandbox_not_found' })
      await expect(metrics.agent(who, 'default', SOON)).rejects.toMatchObject({ code: 'agent_not_found' })
    }
  })
})
