import { AirlockError, createSessionBody } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findSandbox } from '../store/sandboxes.ts'
import { findSession, insertSession } from '../store/sessions.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, aSession, aStep, CALLER, caller, World } from '../testing/world.ts'

let recorder: TestRecorder
let world: World
let sandbox: string
beforeAll(async () => (recorder = await TestRecorder.start()))
beforeEach(async () => {
  world = await World.make(recorder)
  sandbox = (await world.lifecycle.creation.create(CALLER, aSandbox())).id
})
afterEach(() => world.close())
afterAll(() => recorder.stop())

const sessions = () => world.lifecycle.sessions
const open = (asked: Parameters<typeof aSession>[0] = { sandbox }) => sessions().create(CALLER, aSession(asked))
const row = (id: string) => world.store.query((db) => findSession(db, id))
const sandboxRow = (id: string) => world.store.query((db) => findSandbox(db, id))
const failure = async (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )
const story = async () => (await world.story(sandbox)).slice(2)

describe('opening a session', () => {
  it('answers what runs there, and records it before and after', async () => {
    const session = await open({ sandbox, labels: { a: 'b' }, env: { SECRET: 'hush' }, ttlMs: 5000 })
    const now = world.clock.now()
    expect(session).toEqual({
      id: session.id,
      tenant: 'default',
      agent: 'default',
      sandbox,
      ownsSandbox: false,
      runtime: 'bash',
      runtimeVersion: 'bash 1.0',
      state: 'active',
      labels: { a: 'b' },
      ttlMs: 5000,
      restarts: 0,
      createdAt: new Date(now).toISOString(),
      lastActiveAt: new Date(now).toISOString(),
      expiresAt: new Date(now + 5000).toISOString(),
      endedAt: null,
      endReason: null,
    })
    expect(await sessions().get(CALLER, session.id)).toEqual(session)
    expect((await sessions().list(CALLER, { limit: 10 })).items).toEqual([session])
    const [requested, done] = (await world.evidence(sandbox)).slice(2)
    expect([requested?.status, done?.status]).toEqual(['requested', 'done'])
    expect(requested?.payload).toMatchObject({ session: session.id, runtime: 'bash', env: ['SECRET'] })
    expect(done?.payload).toMatchObject({ session: session.id, runtimeVersion: 'bash 1.0' })
    expect(JSON.stringify([requested, done])).not.toContain('hush')
  })

  it('does not happen when its record cannot be written', async () => {
    world.refused = ['session.create requested']
    expect(await failure(open())).toMatchObject({ code: 'evidence_unavailable' })
    expect([world.plane.sessions.size, (await sessions().list(CALLER, { limit: 9 })).items]).toEqual([0, []])
  })

  it.each(['runtime_unavailable', 'runtime_crashed', 'too_many_sessions', 'not_a_directory'] as const)(
    'that the data plane refuses with %s leaves no session, and the sandbox as it was',
    async (code) => {
      world.plane.script('POST /sandboxes/:id/sessions', () => Promise.reject(new AirlockError(code)))
      expect(await failure(open())).toMatchObject({ code })
      expect((await sessions().list(CALLER, { limit: 9, state: 'all' })).items).toEqual([])
      expect(await story()).toEqual(['session.create requested', 'session.create failed'])
      expect(await sandboxRow(sandbox)).toMatchObject({ state: 'active' })
    },
  )

  it('that nobody answers for says so, and is closed again when somebody does', async () => {
    world.plane.script('POST /sandboxes/:id/sessions', () => 'hang-up')
    world.plane.script('DELETE /sandboxes/:id/sessions/:cid', () => 'hang-up')
    expect(await failure(open())).toMatchObject({ code: 'runtime_unreachable', retryable: true })
    world.plane.script('DELETE /sandboxes/:id/sessions/:cid', undefined)
    world.plane.calls.length = 0
    await world.sweep()
    expect(world.plane.calls.filter((call) => call.startsWith('DELETE'))).toHaveLength(1)
    await world.sweep()
    expect(await story()).toEqual(['session.create requested', 'session.create failed', 'session.end done'])
  })

  it('that a crash cut short is ended by the next life', async () => {
    const whole = await open()
    const unopened = { ...(await row(whole.id)), id: 'ses_01kzzzzzzzzzzzzzzzzzzzzzzz', runtimeVersion: '' }
    await world.store.query((db) => insertSession(db, unopened as Parameters<typeof insertSession>[1]))
    expect(await failure(sessions().get(CALLER, unopened.id))).toMatchObject({ code: 'session_not_found' })
    await world.restart()
    expect(await row(unopened.id)).toMatchObject({ state: 'terminated', endReason: 'create_failed' })
    expect(await row(whole.id)).toMatchObject({ state: 'active' })
  })

  it('in a new sandbox makes one that lives at least as long, and ends it when it cannot be opened', async () => {
    const session = await open({ create: aSandbox({ ttlMs: 1000, idleMs: 1000 }), ttlMs: 60_000 })
    expect(session).toMatchObject({ ownsSandbox: true })
    expect(await sandboxRow(session.sandbox)).toMatchObject({ state: 'active', ttlMs: 60_000, idleMs: 60_000 })
    world.plane.script('POST /sandboxes/:id/sessions', () => Promise.reject(new AirlockError('runtime_crashed')))
    expect(await failure(open({}))).toMatchObject({ code: 'runtime_crashed' })
    expect([...world.plane.sandboxes.keys()].toSorted()).toEqual([sandbox, session.sandbox].toSorted())
  })

  it('is refused with both a sandbox and a wish for a new one', () => {
    expect(createSessionBody.safeParse({ runtime: 'bash', sandbox, create: {} }).success).toBe(false)
  })

  it('in a sandbox of another, or in one that ended, is refused', async () => {
    for (const who of [caller({ tenant: 'other' }), caller({ agents: ['other'] })])
      expect(await failure(sessions().create(who, aSession({ sandbox })))).toMatchObject({ code: 'sandbox_not_found' })
    await world.lifecycle.termination.terminate(sandbox, { reason: 'terminated', actor: 'x' })
    expect(await failure(open())).toMatchObject({ code: 'sandbox_ended' })
  })
})

describe('a session', () => {
  it('of another is not found, whatever is asked', async () => {
    const { id } = await open()
    const { steps } = world.lifecycle
    for (const who of [caller({ tenant: 'other' }), caller({ agents: ['other'] })]) {
      for (const work of [
        sessions().get(who, id),
        sessions().interrupt(who, id),
        sessions().restart(who, id),
        sessions().terminate(who, id),
        steps.run(who, id, aStep()),
        steps.list(who, id, { limit: 1 }),
      ])
        expect(await failure(work)).toMatchObject({ code: 'session_not_found' })
      expect((await sessions().list(who, { limit: 9 })).items).toEqual([])
    }
  })

  it('expires when its time is over, and its own sandbox with it', async () => {
    const given = await open({ sandbox, ttlMs: 1000 })
    const own = await open({ ttlMs: 1000, create: aSandbox() })
    world.clock.advance(999)
    await world.sweep()
    expect(await row(given.id)).toMatchObject({ state: 'active' })
    world.clock.advance(1)
    await world.sweep()
    for (const { id } of [given, own])
      expect(await row(id)).toMatchObject({ state: 'expired', endReason: 'ttl', endedAt: world.clock.now() })
    expect(await sandboxRow(own.sandbox)).toMatchObject({ state: 'stopped', endReason: 'ttl' })
    expect(await sandboxRow(sandbox)).toMatchObject({ state: 'active' })
    expect(world.plane.sessions.has(given.id)).toBe(false)
    expect(await story()).toEqual(['session.create requested', 'session.create done', 'session.end done'])
    for (const work of [
      sessions().interrupt(CALLER, given.id),
      sessions().restart(CALLER, given.id),
      world.lifecycle.steps.run(CALLER, given.id, aStep()),
    ])
      expect(await failure(work)).toMatchObject({ code: 'session_expired', status: 410 })
  })

  it('lives as long as it is used, and its sandbox with it', async () => {
    const { id } = await open({ sandbox, ttlMs: 60 * 60_000 })
    world.clock.advance(59 * 60_000)
    // The sandbox alone would have expired long ago.
    await sessions().restart(CALLER, id)
    await world.sweep()
    world.clock.advance(59 * 60_000)
    await world.sweep()
    expect(await row(id)).toMatchObject({ state: 'active', restarts: 1 })
    expect(await sandboxRow(sandbox)).toMatchObject({ state: 'active' })
  })

  it('does not expire while a step runs in it', async () => {
    const { id } = await open({ sandbox, ttlMs: 1000 })
    const step = (await world.lifecycle.steps.run(CALLER, id, aStep())).noun
    for (let second = 0; second < 3; second++) {
      world.clock.advance(900)
      await world.sweep()
    }
    expect(await row(id)).toMatchObject({ state: 'active' })
    world.plane.endCommand(step.id, {})
    await expect
      .poll(() => world.lifecycle.steps.get(CALLER, { session: id, step: step.id }))
      .toMatchObject({
        status: 'completed',
      })
    world.clock.advance(1000)
    await world.sweep()
    expect(await row(id)).toMatchObject({ state: 'expired' })
  })

  it('ends with its sandbox, in the same transaction as its steps', async () => {
    const { id } = await open()
    const step = (await world.lifecycle.steps.run(CALLER, id, aStep())).noun
    await world.lifecycle.termination.terminate(sandbox, { reason: 'terminated', actor: 'x' })
    expect(await row(id)).toMatchObject({ state: 'terminated', endReason: 'sandbox_ended' })
    expect(await world.lifecycle.steps.get(CALLER, { session: id, step: step.id })).toMatchObject({
      status: 'failed',
      error: { name: 'RuntimeCrashed' },
    })
    expect((await story()).toSorted()).toEqual(
      [
        'sandbox.terminate done',
        'sandbox.terminate requested',
        'session.create done',
        'session.create requested',
        'session.end done',
        'step.run failed',
        'step.run requested',
      ].toSorted(),
    )
  })

  it('is terminated once, by its caller, with the sandbox that was made for it', async () => {
    const given = await open()
    const own = await open({ create: aSandbox() })
    for (const { id } of [given, own]) {
      const ended = await sessions().terminate(CALLER, id)
      expect(ended).toMatchObject({ state: 'terminated', endReason: 'terminated' })
      expect(await sessions().terminate(CALLER, id)).toEqual(ended)
    }
    expect([...world.plane.sandboxes.keys()]).toEqual([sandbox])
    expect(world.plane.sessions.has(given.id)).toBe(false)
  })

  it('whose sandbox a crash left behind takes it along at the next look', async () => {
    const { id, sandbox: own } = await open({ create: aSandbox() })
    world.plane.script('DELETE /sandboxes/:id', () => 'hang-up')
    expect(await failure(sessions().terminate(CALLER, id))).toMatchObject({ code: 'data_plane_unavailable' })
    world.plane.script('DELETE /sandboxes/:id', undefined)
    await world.restart()
    expect(await sandboxRow(own)).toMatchObject({ state: 'stopped' })
  })

  it('is interrupted without waiting for evidence', async () => {
    const { id } = await open()
    world.refused = ['session.interrupt requested']
    await sessions().interrupt(CALLER, id)
    expect(world.plane.calls.at(-1)).toBe(`POST /sandboxes/${sandbox}/sessions/:cid/interrupt`)
    expect((await story()).slice(2)).toEqual(['session.interrupt requested', 'session.interrupt done'])
  })

  it.each([
    ['hang-up', 'runtime_unreachable'],
    ['guest_lost', 'runtime_unreachable'],
    ['session_not_found', 'runtime_crashed'],
    ['runtime_crashed', 'runtime_crashed'],
  ] as const)('of which the data plane says %s is %s for its caller', async (said, code) => {
    const { id } = await open()
    world.plane.script('POST /sandboxes/:id/sessions/:cid/restart', () =>
      said === 'hang-up' ? said : Promise.reject(new AirlockError(said)),
    )
    expect(await failure(sessions().restart(CALLER, id))).toMatchObject({ code, status: 503 })
  })
})
