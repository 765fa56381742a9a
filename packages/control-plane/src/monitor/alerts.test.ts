import { AirlockError, type AlertLevel, type MetricEvent, type MetricSample, type Threshold } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, CALLER, World } from '../testing/world.ts'
import { countAlerts, countAlertsOf, listOpenAlerts } from '../store/alerts.ts'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import { Alerts } from './alerts.ts'
import { aSample, type SaidSample } from './testing/observed.ts'

const USUAL: Threshold = { warning: 80, critical: 95 }
const RULES = {
  thresholds: { cpu: { warning: 70, critical: 90 }, memory: USUAL, disk: USUAL, pids: USUAL },
  sustained: 2,
  endedFor: ['pids', 'oom', 'disk', 'cpu'],
} as const

let recorder: TestRecorder
let world: World
let told: Record<string, unknown>[]
let alerts: Alerts
let id: string
let before: MetricSample | undefined

beforeAll(async () => {
  recorder = await TestRecorder.start()
})
afterAll(() => recorder?.stop())
beforeEach(async () => {
  world = await World.make(recorder)
  told = []
  id = (await world.lifecycle.creation.create(CALLER, aSandbox())).id
  await start()
})
afterEach(async () => {
  await alerts?.stop()
  await world?.close()
})

/** As a control plane starts: the first round only learns what was raised before. */
async function start(rules: ConstructorParameters<typeof Alerts>[1]['rules'] = RULES): Promise<void> {
  const webhooks = {
    send: (_tenant: string, _event: string, payload: Readonly<Record<string, unknown>>) => void told.push(payload),
    stop: async () => {},
  }
  const { termination } = world.lifecycle
  alerts = new Alerts({ ...world.context, webhooks }, { rules, termination, firstPauseMs: 1 })
  before = undefined
  await round({})
}

async function row(): Promise<StoredSandbox> {
  const found = await world.store.query((db) => findSandbox(db, id))
  if (!found) throw new TypeError('it is not there')
  return found
}

/** One round of the monitor, and all that follows from it. */
async function round(said: SaidSample): Promise<readonly MetricEvent[]> {
  world.clock.advance(5000)
  const sample = aSample({ at: new Date(world.clock.now()).toISOString(), ...said })
  const events = alerts.judge([{ row: await row(), sample, before }])
  before = sample
  await alerts.settled()
  return events
}

async function rounds(times: number, said: SaidSample): Promise<readonly MetricEvent[]> {
  const events: MetricEvent[] = []
  for (let n = 0; n < times; n++) events.push(...(await round(said)))
  return events
}

const memory = (percent: number) => ({ ofLimit: { memory: percent } })
const open = async () => {
  const rows = await world.store.query((db) => listOpenAlerts(db, 'here'))
  return rows.map(({ resource, level, percent, threshold }) => [resource, level, percent, threshold])
}
const recorded = async () =>
  (await world.evidence(id))
    .filter(({ point }) => point === 'monitor.alert')
    .map(({ status, payload }) => [status, payload])

describe('alerts', () => {
  it('are raised, escalated, eased and cleared: each once, in evidence, at webhooks, for followers and in the store', async () => {
    const said = async (percent: number) => rounds(4, memory(percent))
    const now = (percent: number, level: AlertLevel, threshold: number) => ({
      event: 'alert',
      alert: {
        sandbox: id,
        agent: 'default',
        resource: 'memory',
        level,
        percent,
        threshold,
        since: expect.any(String),
      },
    })
    expect(await said(80)).toEqual([now(80, 'warning', 80)])
    expect(await open()).toEqual([['memory', 'warning', 80, 80]])
    expect(await said(96.5)).toEqual([now(96.5, 'critical', 95)])
    expect(await open()).toEqual([
      ['memory', 'warning', 80, 80],
      ['memory', 'critical', 96.5, 95],
    ])
    expect(alerts.of(id)).toEqual({ alerts: [now(96.5, 'critical', 95).alert], raised: { warning: 1, critical: 1 } })
    expect(await said(85)).toEqual([now(85, 'warning', 80)])
    expect(await open()).toEqual([['memory', 'warning', 80, 80]])
    expect(await said(12)).toEqual([{ event: 'cleared', sandbox: id, resource: 'memory', at: expect.any(String) }])
    expect(await open()).toEqual([])
    expect(alerts.of(id)).toEqual({ alerts: [], raised: { warning: 1, critical: 1 } })
    const changes = [
      { change: 'raised', level: 'warning', was: null, percent: 80, threshold: 80 },
      { change: 'escalated', level: 'critical', was: 'warning', percent: 96.5, threshold: 95 },
      { change: 'eased', level: 'warning', was: 'critical', percent: 85, threshold: 95 },
      { change: 'cleared', level: null, was: 'warning', percent: 12, threshold: 80 },
    ]
    const of = { sandbox: id, agent: 'default', resource: 'memory' }
    expect(told).toEqual(changes.map((change) => ({ ...change, ...of, at: expect.any(String) })))
    expect(await recorded()).toEqual(
      changes.map(({ change, ...payload }) => [
        'done',
        { ...payload, resource: 'memory', cleared: change === 'cleared' },
      ]),
    )
    expect(await world.store.query((db) => countAlerts(db, { tenant: 'default', agent: 'default', since: 0 }))).toEqual(
      {
        warning: 1,
        critical: 1,
      },
    )
  })

  it('are of each resource alone, and of processors against what the sandbox may have of them', async () => {
    const { cpus } = (await row()).limits
    const events = await rounds(2, { cpuPercent: 71 * cpus, ofLimit: { disk: 96, inodes: 81, pids: 94.9 } })
    expect(
      events.map((event) => (event.event === 'alert' ? [event.alert.resource, event.alert.level] : event)),
    ).toEqual([
      ['cpu', 'warning'],
      ['disk', 'critical'],
      ['inodes', 'warning'],
      ['pids', 'warning'],
    ])
  })

  it('that went straight to critical come down to a warning of their own', async () => {
    await rounds(2, memory(99))
    expect(await open()).toEqual([['memory', 'critical', 99, 95]])
    await rounds(2, memory(82))
    expect(await open()).toEqual([['memory', 'warning', 82, 80]])
  })

  it('are off where no threshold is set', async () => {
    await start({ ...RULES, thresholds: { ...RULES.thresholds, memory: null } })
    expect(await rounds(5, memory(100))).toEqual([])
  })

  it('that ease are counted as what they were, also after a restart', async () => {
    await rounds(2, memory(96))
    await rounds(2, memory(85))
    const was = { alerts: [{ level: 'warning' }], raised: { warning: 0, critical: 1 } }
    expect(alerts.of(id)).toMatchObject(was)
    expect(await world.store.query((db) => countAlertsOf(db, id))).toEqual(was.raised)
    await world.restart()
    await start()
    expect(alerts.of(id)).toMatchObject(was)
    await rounds(2, memory(96))
    expect(alerts.of(id).raised).toEqual({ warning: 0, critical: 2 })
  })

  it('that still hold are not raised again after a restart, and are cleared when they do not', async () => {
    await rounds(2, memory(96))
    await world.restart()
    await start()
    told = []
    expect(alerts.of(id)).toMatchObject({ alerts: [{ level: 'critical' }], raised: { warning: 0, critical: 1 } })
    expect(await rounds(3, memory(96))).toEqual([])
    expect(await rounds(2, memory(10))).toEqual([
      { event: 'cleared', sandbox: id, resource: 'memory', at: expect.any(String) },
    ])
    expect(told).toMatchObject([{ change: 'cleared', was: 'critical' }])
    expect([await open(), alerts.of(id).raised]).toEqual([[], { warning: 0, critical: 1 }])
  })

  it('of a threshold that was turned off meanwhile are cleared', async () => {
    await rounds(2, memory(96))
    await world.restart()
    await start({ ...RULES, thresholds: { ...RULES.thresholds, memory: null } })
    expect(await rounds(1, memory(96))).toEqual([
      { event: 'cleared', sandbox: id, resource: 'memory', at: expect.any(String) },
    ])
  })

  it('end with their sandbox', async () => {
    await rounds(2, memory(96))
    told = []
    alerts.judge([])
    alerts.judge([])
    expect(told).toEqual([])
    alerts.judge([])
    await alerts.settled()
    expect(told).toMatchObject([{ change: 'cleared', was: 'critical', sandbox: id }])
    expect([await open(), alerts.of(id)]).toEqual([[], { alerts: [], raised: { warning: 0, critical: 0 } }])
  })

  it('are not raised for what is paused', async () => {
    await world.lifecycle.pauses.pause(CALLER, id)
    expect(await rounds(5, memory(100))).toEqual([])
  })

  it('are written when the store takes them again', async () => {
    const { store } = world.context
    let isDown = true
    const flaky = {
      ...world.context,
      store: {
        query: store.query.bind(store),
        transaction: async <T>(work: Parameters<typeof store.transaction<T>>[0]) => {
          if (isDown) throw new AirlockError('store_unavailable')
          return store.transaction(work)
        },
      },
    }
    alerts = new Alerts(flaky, { rules: RULES, termination: world.lifecycle.termination })
    await rounds(5, memory(85))
    expect(await open()).toEqual([])
    isDown = false
    await round(memory(85))
    expect(await open()).toEqual([['memory', 'warning', 85, 80]])
  })
})

describe('what a sandbox is ended for', () => {
  const FULL = { pids: 256, ofLimit: { pids: 100 } }
  const SEEN = { pids: 256, limit: 256, refused: 0, samples: 3 }
  const KILL = { action: 'kill', resource: 'pids', reason: 'pids_exhausted', seen: SEEN }
  const kills = async () =>
    (await recorded()).filter(([, payload]) => (payload as { action?: string }).action === 'kill')
  const toldKills = () => told.filter((one) => 'reason' in one)

  it('is in its row, in evidence and at webhooks, once', async () => {
    await rounds(3, FULL)
    expect(await row()).toMatchObject({ state: 'stopped', endReason: 'pids_exhausted' })
    await rounds(3, FULL)
    expect(await kills()).toEqual([
      ['requested', KILL],
      ['done', { ...KILL, endReason: 'pids_exhausted' }],
    ])
    const { action: _action, ...said } = KILL
    const of = { ...said, level: 'critical', sandbox: id, agent: 'default', failures: 0, error: null }
    expect(toldKills()).toEqual([
      { ...of, change: 'ending', endReason: null },
      { ...of, change: 'ended', endReason: 'pids_exhausted' },
    ])
  })

  it('is nothing where it is turned off', async () => {
    await start({ ...RULES, endedFor: ['oom', 'disk'] })
    await rounds(9, FULL)
    expect((await row()).state).toBe('active')
  })

  it('is tried again until it is gone; from the third failure on it is told as critical and stands still first', async () => {
    let refused = 0
    world.plane.script('DELETE /sandboxes/:id', () => {
      if (++refused <= 5) throw new AirlockError('internal', 'It does not go.')
      world.plane.script('DELETE /sandboxes/:id', undefined)
      return { existed: true, usage: null }
    })
    await rounds(3, FULL)
    expect(await row()).toMatchObject({ state: 'stopped', endReason: 'pids_exhausted' })
    // Each forced try asks the data plane itself once more.
    expect(world.plane.calls.filter((call) => call === 'POST /freeze')).toHaveLength(2)
    expect(await kills()).toEqual([
      ['requested', KILL],
      ['failed', { ...KILL, failures: 3 }],
      ['done', { ...KILL, failures: 4, endReason: 'pids_exhausted' }],
    ])
    expect(toldKills().map(({ change, failures, error }) => [change, failures, error])).toEqual([
      ['ending', 0, null],
      ['end_failed', 3, { code: 'internal', message: 'It does not go.' }],
      ['ended', 4, null],
    ])
  })

  it('is not what somebody else ended it for meanwhile', async () => {
    world.plane.script('DELETE /sandboxes/:id', async () => {
      throw new AirlockError('internal')
    })
    const { termination } = world.lifecycle
    await expect(termination.terminate(id, { reason: 'terminated', actor: 'key:test' })).rejects.toThrow()
    const stopping = { ...(await row()), state: 'active' as const }
    world.plane.script('DELETE /sandboxes/:id', undefined)
    for (let n = 0; n < 3; n++) alerts.judge([{ row: stopping, sample: aSample(FULL), before: undefined }])
    await alerts.settled()
    expect(await row()).toMatchObject({ state: 'stopped', endReason: 'terminated' })
    expect((await kills()).at(-1)).toEqual(['done', { ...KILL, endReason: 'terminated' }])
  })

  it('is nothing that happens to it while it is paused', async () => {
    await world.lifecycle.pauses.pause(CALLER, id)
    await rounds(5, { ...FULL, oomKills: 9 })
    expect((await row()).state).toBe('paused')
  })
})
