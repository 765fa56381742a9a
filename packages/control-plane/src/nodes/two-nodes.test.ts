import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestPostgres } from '../../../../test/support/postgres.ts'
import { requires } from '../../../../test/support/requires.ts'
import { findAgent } from '../store/agents.ts'
import { putSetLimits } from '../store/budgets.ts'
import { findCommand } from '../store/commands.ts'
import { describeNode } from '../store/nodes.ts'
import { countLiving, findSandbox } from '../store/sandboxes.ts'
import { sumBilled } from '../store/usage.ts'
import { AuditHeads } from '../evidence/audit-heads.ts'
import { Sandboxes } from '../sandboxes/sandboxes.ts'
import { createApp } from '../app/app.ts'
import { LostNodes } from './lost-nodes.ts'
import { endAll } from '../sweep/shutdown.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aCommand, aSandbox, caller, CALLER, World } from '../testing/world.ts'

const HOUR = 3_600_000
const MINUTE = 60_000

describe('two nodes that share a store', requires('postgres'), () => {
  let postgres: TestPostgres
  let recorders: readonly [TestRecorder, TestRecorder]
  let one: World
  let two: World
  beforeAll(async () => {
    postgres = await TestPostgres.start()
    recorders = [await TestRecorder.start(), await TestRecorder.start()]
  })
  afterAll(async () => {
    for (const recorder of recorders ?? []) await recorder.stop()
    await postgres?.stop()
  })
  beforeEach(async () => {
    const place = { url: await postgres.createDatabase() }
    one = await World.make(recorders[0], { place, node: 'one', capacity: 4 })
    two = await World.make(recorders[1], { place, node: 'two', capacity: 4 })
    for (const { node } of [one, two])
      await one.store.query((db) => describeNode(db, node.id, { url: `https://${node.id}.example` }))
  })
  afterEach(async () => {
    await one.close()
    await two.close()
  })

  const create = (world: World, name?: string) =>
    world.lifecycle.creation.create(CALLER, aSandbox(name === undefined ? {} : { name }))
  const row = (id: string) => one.store.query((db) => findSandbox(db, id))
  const agent = () => one.store.query((db) => findAgent(db, { tenant: 'default', agent: 'default' }))
  const failure = async (work: Promise<unknown>) => work.catch((error: unknown) => error)
  const app = (world: World) =>
    createApp(world.context, world.lifecycle, recorders[world === one ? 0 : 1].client('app'))
  const WRONG = {
    code: 'wrong_node',
    message: 'The sandbox lives on another node, one.',
    hint: 'Ask https://one.example.',
  }

  it('judge only their own sandboxes and commands, at every look and after a restart', async () => {
    const mine = await create(one)
    const command = (await one.lifecycle.commands.run(CALLER, mine.id, aCommand())).noun
    await two.sweep()
    await two.restart()
    await two.lifecycle.receipts.payOwed()
    expect(await row(mine.id)).toMatchObject({ state: 'active', node: 'one' })
    const running = await one.store.query((db) => findCommand(db, { sandbox: mine.id, command: command.id }))
    expect(running).toMatchObject({ state: 'running' })
    expect(two.plane.calls.filter((call) => call.includes(mine.id))).toEqual([])
  })

  it('end only their own when they are ended', async () => {
    const [mine, yours] = [await create(one), await create(two)]
    await endAll(one.context, one.lifecycle, AbortSignal.timeout(20_000))
    expect([(await row(mine.id))?.state, (await row(yours.id))?.state]).toEqual(['stopped', 'active'])
  })

  it('show each other their sandboxes, and name the node for everything that has an effect', async () => {
    const { id } = await create(one, 'box')
    const command = (await one.lifecycle.commands.run(CALLER, id, aCommand())).noun
    const of = { sandbox: id, command: command.id }
    const there = app(two)
    expect(await there.sandboxes.get(CALLER, id)).toMatchObject({ id, node: 'one', state: 'active' })
    const all = await there.sandboxes.list(CALLER, { labels: {}, limit: 10 })
    expect(all.items.map((item) => item.id)).toEqual([id])
    expect(await there.commands.get(CALLER, of)).toMatchObject({ id: command.id, state: 'running' })
    const { signal } = new AbortController()
    const stat = { op: 'file.stat', path: '/' } as const
    for (const effect of [
      () => there.sandboxes.terminate(CALLER, id, { force: true }),
      () => there.commands.run(CALLER, id, aCommand()),
      () => two.lifecycle.commands.wait(CALLER, of, signal),
      () => there.commands.signal(CALLER, of, 'SIGTERM'),
      () => there.files.read(CALLER, id, { path: '/x', signal }),
      () => there.files.operate(CALLER, id, stat),
      () => Array.fromAsync(there.commands.events(CALLER, of, { from: 0, follow: true, signal })),
      () => new Sandboxes(two.context, two.lifecycle).extend(CALLER, id, { ttlMs: 5000 }),
      () => there.creation.getOrCreate(CALLER, { ...aSandbox(), name: 'box' }),
    ])
      expect(await failure(effect())).toMatchObject(WRONG)
    expect(await row(id)).toMatchObject({ state: 'active' })
    await one.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'system' })
    expect(await there.sandboxes.terminate(CALLER, id, { force: true })).toMatchObject({ state: 'stopped' })
  })

  it('keep names unique over both, whoever is faster', async () => {
    const tries = await Promise.allSettled([create(one, 'box'), create(two, 'box'), create(one, 'box')])
    expect(tries.map((one) => one.status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
    for (const lost of tries) if (lost.status === 'rejected') expect(lost.reason).toMatchObject({ code: 'name_taken' })
  })

  it('have a capacity each', async () => {
    const tries = await Promise.allSettled(
      [one, two].flatMap((world) => Array.from({ length: 6 }, () => create(world))),
    )
    expect(tries.filter((one) => one.status === 'fulfilled')).toHaveLength(8)
    for (const node of ['one', 'two']) expect(await one.store.query((db) => countLiving(db, { node }))).toBe(4)
  })

  it('let an agent be idle exactly when it has no sandbox on any node', async () => {
    const made = await Promise.all([one, two, one, two].map((world) => create(world)))
    expect(await agent()).toMatchObject({ state: 'connected', generation: 1 })
    const end = { reason: 'terminated', actor: 'system' } as const
    await Promise.all(made.map(({ id, node }) => (node === 'one' ? one : two).lifecycle.termination.terminate(id, end)))
    expect(await agent()).toMatchObject({ state: 'idle', generation: 1 })
    await create(two)
    expect(await agent()).toMatchObject({ state: 'connected', generation: 2 })
  })

  describe('when one of them may be lost', () => {
    const TTL_MS = 600_000
    let lost: LostNodes
    beforeEach(() => (lost = new LostNodes(two.context, two.lifecycle.receipts)))

    /** As if the last sign of life of node one had been so long ago. */
    const silence = (ms: number) =>
      postgres.ask(
        'url' in one.place ? one.place.url : '',
        `update nodes set seen_at = seen_at - ${ms} where id = 'one'`,
      )
    const look = async (times = 7) => {
      for (let i = 0; i < times; i++) await lost.look()
    }
    const limit = { limits: { sandboxes: 1 }, at: 1 }

    it('leave alone what lives elsewhere, however wrong their own clock is', async () => {
      const { id } = await create(one, 'box')
      await one.beat()
      two.clock.advance(24 * HOUR + 6 * MINUTE)
      await look()
      await one.sweep()
      expect([(await row(id))?.state, one.plane.sandboxes.has(id)]).toEqual(['active', true])
    })

    it('free names, places and budgets of the lost one when its leases ended, and bill to its last sign of life', async () => {
      await one.store.query((db) => putSetLimits(db, { tenant: 'default', agent: 'default' }, limit))
      const { id } = await create(one, 'box')
      const command = (await one.lifecycle.commands.run(CALLER, id, aCommand())).noun
      one.clock.advance(MINUTE)
      await one.beat()
      await silence(TTL_MS - 2 * MINUTE)
      await look()
      expect(await row(id)).toMatchObject({ state: 'active' })
      expect(await failure(create(two, 'box'))).toMatchObject({ code: 'budget_exhausted' })
      await silence(2 * MINUTE)
      await look()
      expect(await row(id)).toMatchObject({ state: 'error', endReason: 'ttl', error: { code: 'node_lost' } })
      expect(await one.store.query((db) => sumBilled(db, id))).toMatchObject({ wallMs: MINUTE, computeMs: MINUTE })
      const ended = await one.store.query((db) => findCommand(db, { sandbox: id, command: command.id }))
      expect([ended?.state, await agent(), await two.story(id)]).toEqual([
        'lost',
        expect.objectContaining({ state: 'idle' }),
        ['sandbox.terminate unknown'],
      ])
      await create(two, 'box')
    })

    it('owe the record of what was written off until it is acknowledged, also when who wrote it off dies before', async () => {
      const { id } = await create(one)
      await one.beat()
      await silence(TTL_MS + MINUTE)
      const dying = new LostNodes(two.context, { sandboxLost: () => {} })
      for (let i = 0; i < 7; i++) await dying.look()
      expect(await row(id)).toMatchObject({ state: 'error', recorded: false })
      await look(6)
      expect(await two.story(id)).toEqual([])
      await look(1)
      await two.context.audit.flush(10_000)
      expect(await two.story(id)).toEqual(['sandbox.terminate unknown'])
      await two.lifecycle.receipts.flush(async () => new Set(['default']))
      expect(await row(id)).toMatchObject({ state: 'error', recorded: true })
    })

    it('hold for lost only who was silent at every look, so not when the store was away or its clock jumped', async () => {
      const { id } = await create(one)
      await one.beat()
      await silence(2 * TTL_MS)
      await look(6)
      await one.beat()
      await silence(2 * TTL_MS)
      await look(6)
      expect(await row(id)).toMatchObject({ state: 'active' })
      await look(1)
      expect(await row(id)).toMatchObject({ state: 'error' })
    })

    it('have it remove what was written off when it is back, and bill what that used', async () => {
      const { id } = await create(one)
      await one.beat()
      await silence(TTL_MS + MINUTE)
      await look()
      one.clock.advance(TTL_MS)
      await one.sweep()
      expect(one.plane.sandboxes.has(id)).toBe(false)
      expect(await one.store.query((db) => sumBilled(db, id))).toMatchObject({ wallMs: TTL_MS, cpuMs: 7 })
    })

    it('free what was being made at once, for nobody else can finish it', async () => {
      one.at = async (name) => {
        if (name === 'create.started') await Promise.withResolvers().promise
      }
      void create(one, 'box')
      await expect.poll(() => one.store.query((db) => countLiving(db, { node: 'one' }))).toBe(1)
      await one.beat()
      await silence(MINUTE)
      await look()
      await create(two, 'box')
    })
  })

  it('obey a killswitch of each other: at once where something is granted, and at the next look where something lives', async () => {
    const [mine, yours] = [await create(one), await create(two)]
    const admin = caller({ role: 'admin' })
    const kill = { scope: 'agent', target: 'default', reason: '' } as const
    const report = await one.lifecycle.killswitch.on(admin, kill)
    expect(report).toMatchObject({ sandboxes: [{ id: mine.id, node: 'one', verified: true }], nodesDue: ['two'] })
    expect(await failure(create(two))).toMatchObject({ code: 'killed' })
    expect(await row(yours.id)).toMatchObject({ state: 'active' })
    await two.sweep()
    expect(await row(yours.id)).toMatchObject({ state: 'stopped', endReason: 'killed' })
    expect(await failure(two.lifecycle.commands.run(CALLER, yours.id, aCommand()))).toMatchObject({
      code: 'sandbox_ended',
    })
    const [told] = await one.lifecycle.killswitch.list(admin, { all: false })
    expect(told?.nodesDue).toEqual([])
    expect(new Set(told?.sandboxes.map(({ id, node, verified }) => `${id} ${node} ${verified}`))).toEqual(
      new Set([`${mine.id} one true`, `${yours.id} two true`]),
    )
    await two.lifecycle.killswitch.lift(admin, kill)
    expect(await failure(create(one))).toMatchObject({ code: 'killed' })
    await one.sweep()
    await create(one)
  })

  it('keep the heads of their chains apart, and list them all', async () => {
    await create(one)
    await create(two)
    await create(two)
    const found = []
    for (const [n, world] of [one, two].entries()) {
      const evidence = (n === 0 ? recorders[0] : recorders[1]).client('reader')
      const heads = new AuditHeads(world.context, evidence)
      await heads.check()
      await heads.keep()
      found.push(await evidence.head('default'))
    }
    expect(await app(one).audit.chains(CALLER)).toEqual(
      found.map(({ head, publicKey }, n) => ({
        node: ['one', 'two'][n],
        url: ['https://one.example', 'https://two.example'][n],
        head: { ...head, ts: expect.any(String), signature: expect.any(String) },
        publicKey,
        seenAt: new Date(0).toISOString(),
      })),
    )
    expect(one.context.readiness.reason).toBeUndefined()
  })
})
