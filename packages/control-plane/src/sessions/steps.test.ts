import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { AirlockError, type RunStepBody, type Step, type StepEvent } from '@airlock/contract'
import { newId } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, aSession, aStep, CALLER, World } from '../testing/world.ts'

let recorder: TestRecorder
let world: World
let sandbox: string
let session: string
beforeAll(async () => (recorder = await TestRecorder.start()))
beforeEach(async () => {
  world = await World.make(recorder)
  sandbox = (await world.lifecycle.creation.create(CALLER, aSandbox())).id
  session = (await world.lifecycle.sessions.create(CALLER, aSession({ sandbox }))).id
})
afterEach(() => world.close())
afterAll(() => recorder.stop())

const forever = new AbortController().signal
const run = async (asked: Partial<RunStepBody> = {}) =>
  (await world.lifecycle.steps.run(CALLER, session, aStep(asked))).noun
const get = (step: string) => world.lifecycle.steps.get(CALLER, { session, step })
const events = (step: string, asked: { from?: number; follow?: boolean; signal?: AbortSignal } = {}) =>
  world.lifecycle.steps.events(CALLER, { session, step }, { from: 0, follow: true, signal: forever, ...asked })
const failure = async (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )
const story = async () => (await world.story(sandbox)).slice(4)
const rich = (value: unknown) => ({ stream: 'rich', bytes: Buffer.from(`${JSON.stringify(value)}\n`) }) as const

/** How the step ends for whoever follows it. */
async function endOf(step: string): Promise<Step | undefined> {
  const last = (await Array.fromAsync(events(step))).at(-1)
  return last?.event === 'ended' ? last.step : undefined
}

describe('running a step', () => {
  it('answers its result, and records what was asked before and how it ended after', async () => {
    const code = `echo "${'x'.repeat(300)}" # token=hushhush`
    world.plane.output = [{ stream: 'stdout', bytes: Buffer.from('out') }]
    const step = await run({ code, stepId: 'mine', env: { A: 'hush' }, stdin: 'hush', timeoutMs: 50 })
    expect(step).toMatchObject({ status: 'running', stepId: 'mine', session, sandbox, endedAt: null })
    const usage = { cpuMs: 3, memoryPeakBytes: null }
    world.plane.endCommand(step.id, { outputBytes: 3, usage, restarted: true })
    expect(await endOf(step.id)).toEqual({
      ...step,
      status: 'completed',
      restarted: true,
      outputBytes: 3,
      startedAt: new Date(1_000_000).toISOString(),
      endedAt: new Date(1_000_005).toISOString(),
      durationMs: 5,
      resourceUsage: usage,
      provenance: { image: 'scripted', runtime: 'bash 1.0', policyVersion: expect.stringMatching(/^builtin@\d+$/) },
    })
    expect(await world.lifecycle.sessions.get(CALLER, session)).toMatchObject({ restarts: 1 })
    const [requested, done] = (await world.evidence(sandbox)).slice(4)
    expect(requested?.payload).toEqual({
      requestId: 'req_test',
      step: step.id,
      session,
      runtime: 'bash',
      stepId: 'mine',
      code: {
        sha256: createHash('sha256').update(code).digest('hex'),
        bytes: code.length,
        head: code.slice(0, 200),
      },
      env: ['A'],
      timeoutMs: 50,
    })
    const decision = { effect: 'allow', policyVersion: expect.stringMatching(/^builtin@\d+$/) }
    expect(requested).toMatchObject({ role: 'developer', decision })
    expect(done).toMatchObject({ point: 'step.run', status: 'done', durationMs: 5, decision })
    expect(done?.payload).toMatchObject({ step: step.id, session, restarted: true, usage })
    expect(JSON.stringify([requested, done])).not.toContain('hush')
  })

  it('does not happen, and leaves its id free, when its record cannot be written', async () => {
    world.refused = ['step.run requested']
    expect(await failure(run({ stepId: 'mine' }))).toMatchObject({ code: 'evidence_unavailable' })
    expect(world.plane.steps).toEqual([])
    world.refused = []
    expect(await run({ stepId: 'mine' })).toMatchObject({ status: 'running' })
  })

  it('runs once its record is written, and nobody hears of it before that is on disk', async () => {
    const disk = Promise.withResolvers<void>()
    world.syncing = () => disk.promise
    world.plane.output = [{ stream: 'stdout', bytes: Buffer.from('one') }]
    const told: string[] = []
    const asked = run().finally(() => told.push('asked'))
    await expect.poll(() => world.plane.steps).toHaveLength(1)
    const id = world.plane.steps[0]?.id ?? ''
    world.plane.endCommand(id, { outputBytes: 3 })
    const read = Array.fromAsync(events(id)).finally(() => told.push('read'))
    await delay(100)
    expect(told).toEqual([])
    disk.resolve()
    expect(await asked).toMatchObject({ id })
    expect((await read).map(({ event }) => event)).toEqual(['started', 'output', 'ended'])
  })

  it('whose record did not get to the disk is told to nobody who asked, and its end is recorded', async () => {
    world.syncing = () => Promise.reject(new AirlockError('evidence_unavailable'))
    expect(await failure(run({ stepId: 'mine' }))).toMatchObject({ code: 'evidence_unavailable' })
    const id = world.plane.steps[0]?.id ?? ''
    world.plane.endCommand(id, {})
    await world.sweep()
    await expect.poll(() => get(id)).toMatchObject({ status: 'completed' })
    expect(await story()).toEqual(['step.run requested', 'step.run done'])
    expect(await run({ stepId: 'mine' })).toMatchObject({ id, status: 'completed' })
  })

  it('in a sandbox that may write to the host runs once its record is on disk', async () => {
    const mount = { grant: newId('grt'), path: '/srv', target: '/grants/srv', mode: 'rw', kind: 'dir' } as const
    const mounts = JSON.stringify([mount])
    await world.store.query((db) => db.updateTable('sandboxes').set({ mounts }).where('id', '=', sandbox).execute())
    world.syncing = () => Promise.reject(new AirlockError('evidence_unavailable'))
    expect(await failure(run({ stepId: 'mine' }))).toMatchObject({ code: 'evidence_unavailable' })
    expect(world.plane.steps).toEqual([])
    world.syncing = async () => {}
    expect(await run({ stepId: 'mine' })).toMatchObject({ status: 'running' })
  })

  it.each([
    ['too_many_steps', 'too_many_steps'],
    ['runtime_unreachable', 'runtime_unreachable'],
    ['runtime_crashed', 'runtime_crashed'],
    ['session_not_found', 'runtime_crashed'],
  ] as const)('that the data plane refuses with %s is %s, and leaves no step', async (said, code) => {
    world.plane.script('POST /sandboxes/:id/sessions/:cid/steps', () => Promise.reject(new AirlockError(said)))
    expect(await failure(run({ stepId: 'mine' }))).toMatchObject({ code })
    expect((await world.lifecycle.steps.list(CALLER, session, { limit: 9 })).items).toEqual([])
    expect(await story()).toEqual(['step.run requested', 'step.run failed'])
  })

  it('that certainly was not heard, because nobody listens, is refused', async () => {
    await world.plane.die()
    expect(await failure(run())).toMatchObject({ code: 'runtime_unreachable', retryable: true })
    expect((await world.lifecycle.steps.list(CALLER, session, { limit: 9 })).items).toEqual([])
  })

  it('that was sent and not answered has no known outcome, and is never sent again', async () => {
    world.plane.script('POST /sandboxes/:id/sessions/:cid/steps', () => 'hang-up')
    const step = await run({ stepId: 'mine' })
    world.plane.script('POST /sandboxes/:id/sessions/:cid/steps', undefined)
    expect(await endOf(step.id)).toMatchObject({ status: 'failed', error: { name: 'OutcomeUnknown' } })
    expect(await run({ stepId: 'mine' })).toMatchObject({ id: step.id, status: 'failed' })
    expect([world.plane.steps, await story()]).toEqual([[], ['step.run requested', 'step.run unknown']])
  })

  it('that was heard by a data plane which then died is not taken for one that nobody heard', async () => {
    // The connection was used before, so it may have died before the request: that it was sent again tells nothing.
    world.plane.script('POST /sandboxes/:id/sessions/:cid/steps', async () => {
      await world.plane.die()
      return 'hang-up'
    })
    const step = await run({ stepId: 'mine' })
    world.plane.script('POST /sandboxes/:id/sessions/:cid/steps', undefined)
    await world.plane.listen()
    expect(await endOf(step.id)).toMatchObject({ status: 'failed', error: { name: 'OutcomeUnknown' } })
    expect(await run({ stepId: 'mine' })).toMatchObject({ id: step.id, status: 'failed' })
  })

  it('that failed says why by its last rich line, whoever followed it', async () => {
    const error = { name: 'ValueError', message: 'no', traceback: 'line 1' }
    world.plane.output = [rich({ kind: 'error', error: { ...error, name: 'Forged' } }), rich({ kind: 'error', error })]
    const read = await run()
    world.plane.endCommand(read.id, { exitCode: 1, outputBytes: 200 })
    expect(await endOf(read.id)).toMatchObject({ status: 'failed', error })
    const unread = await run()
    world.plane.endCommand(unread.id, { exitCode: 1, outputBytes: 200 })
    await world.sweep()
    await expect.poll(() => get(unread.id)).toMatchObject({ status: 'failed', error })
  })

  it.each([
    [{ timedOut: true }, 'Timeout'],
    [{}, 'RuntimeCrashed'],
    [{ state: 'lost', exitCode: null }, 'OutcomeUnknown'],
    [{ state: 'lost', exitCode: null, timedOut: true }, 'Timeout'],
  ] as const)('that ended with %j and said nothing has a name for it: %s', async (end, name) => {
    const step = await run()
    world.plane.endCommand(step.id, { exitCode: 1, ...end })
    expect(await endOf(step.id)).toMatchObject({ status: 'failed', error: { name } })
  })
})

describe('a step id', () => {
  it('runs once, however often it is asked for at once, and everybody gets its result', async () => {
    const asked = Array.from({ length: 20 }, () => run({ stepId: 'mine', code: 'x' }))
    const steps = await Promise.all(asked)
    expect([new Set(steps.map(({ id }) => id)).size, world.plane.steps.length]).toEqual([1, 1])
    const ends = steps.map(({ id }) => endOf(id))
    world.plane.endCommand(steps[0]?.id ?? '', { outputBytes: 1 })
    expect(new Set((await Promise.all(ends)).map((step) => step?.status))).toEqual(new Set(['completed']))
    expect(await run({ stepId: 'mine', code: 'x' })).toMatchObject({ id: steps[0]?.id, status: 'completed' })
    expect(await story()).toEqual(['step.run requested', 'step.run done'])
  })

  it('with other code is refused, while it runs and after', async () => {
    const first = run({ stepId: 'mine', code: 'x' })
    expect(await failure(run({ stepId: 'mine', code: 'y' }))).toMatchObject({ code: 'step_mismatch', status: 409 })
    const { id } = await first
    world.plane.endCommand(id, {})
    await endOf(id)
    expect(await failure(run({ stepId: 'mine', code: 'y' }))).toMatchObject({ code: 'step_mismatch' })
    expect(world.plane.steps).toHaveLength(1)
  })

  it('is another in another session', async () => {
    const other = await world.lifecycle.sessions.create(CALLER, aSession({ sandbox }))
    const first = await run({ stepId: 'mine', code: 'x' })
    const second = await world.lifecycle.steps.run(CALLER, other.id, aStep({ stepId: 'mine', code: 'y' }))
    expect(second.noun.id).not.toBe(first.id)
  })

  it('answers the first result after a crash of ours', async () => {
    const step = await run({ stepId: 'mine' })
    await world.restart()
    world.plane.endCommand(step.id, { outputBytes: 1 })
    await expect.poll(() => get(step.id)).toMatchObject({ status: 'completed' })
    expect(await run({ stepId: 'mine' })).toMatchObject({ id: step.id, status: 'completed' })
    expect(world.plane.steps).toHaveLength(1)
  })

  it('of a step that never reached the data plane before a crash has no known outcome', async () => {
    world.at = async (name) => {
      if (name === 'step.row-written') await new Promise(() => {})
    }
    void failure(run({ stepId: 'mine' }))
    await expect
      .poll(async () => (await world.lifecycle.steps.list(CALLER, session, { limit: 1 })).items)
      .toMatchObject([{ status: 'accepted' }])
    world.at = () => {}
    await world.restart()
    const [step] = (await world.lifecycle.steps.list(CALLER, session, { limit: 1 })).items
    await expect.poll(() => get(step?.id ?? '')).toMatchObject({ status: 'failed', error: { name: 'OutcomeUnknown' } })
    expect(await run({ stepId: 'mine' })).toMatchObject({ id: step?.id, status: 'failed' })
    expect(world.plane.steps).toEqual([])
  })
})

describe('the events of a step', () => {
  const shown = { kind: 'result', data: { 'text/plain': '4' } } as const

  it('are what it said, what it showed and how it ended, once, from any of them on', async () => {
    world.plane.output = [
      { stream: 'stdout', bytes: Buffer.from('one') },
      { stream: 'rich', bytes: rich(shown).bytes.subarray(0, 7) },
      { stream: 'stderr', bytes: Buffer.from('two') },
      { stream: 'rich', bytes: rich(shown).bytes.subarray(7) },
    ]
    const outputBytes = 6 + rich(shown).bytes.length
    const step = await run()
    world.plane.endCommand(step.id, { outputBytes, truncated: true })
    const all = await Array.fromAsync(events(step.id))
    const ended = { ...(await get(step.id)), truncated: true }
    expect(all).toEqual([
      { event: 'started', step },
      { event: 'output', stream: 'stdout', offset: 3, text: 'one' },
      { event: 'output', stream: 'stderr', offset: 13, text: 'two' },
      { event: 'rich', offset: outputBytes, output: shown },
      { event: 'truncated', limitBytes: 2 * 1024 * 1024 },
      { event: 'ended', step: ended },
    ] satisfies StepEvent[])
    const rest = async (from: number) => (await Array.fromAsync(events(step.id, { from }))).slice(1)
    expect([await rest(0), await rest(3), await rest(13), await rest(outputBytes)]).toEqual(
      [1, 2, 3, 4].map((at) => all.slice(at)),
    )
  })

  it('go on where they were when the data plane comes back', async () => {
    world.plane.output = [{ stream: 'stdout', bytes: Buffer.from('one') }]
    const step = await run()
    const all = events(step.id)
    expect([(await all.next()).value, (await all.next()).value]).toMatchObject([{ event: 'started' }, { text: 'one' }])
    const next = all.next()
    await world.plane.die()
    world.plane.output.push({ stream: 'stdout', bytes: Buffer.from('two') })
    world.plane.endCommand(step.id, { outputBytes: 6 })
    await world.plane.listen()
    expect([(await next).value, (await all.next()).value]).toMatchObject([
      { text: 'two', offset: 6 },
      { event: 'ended', step: { status: 'completed' } },
    ])
  })

  it('leave a step alone when nobody listens any more', async () => {
    const step = await run()
    const gone = new AbortController()
    const all = events(step.id, { signal: gone.signal })
    await all.next()
    const next = failure(all.next())
    gone.abort()
    expect(await next).toMatchObject({ name: 'AbortError' })
    world.plane.endCommand(step.id, {})
    await expect.poll(() => get(step.id)).toMatchObject({ status: 'completed' })
  })

  it('of a step whose output is kept no longer are its end alone, and say that something is missing', async () => {
    world.plane.output = [{ stream: 'stdout', bytes: Buffer.from('one') }]
    const step = await run()
    world.plane.endCommand(step.id, { outputBytes: 3 })
    await endOf(step.id)
    world.plane.commands.clear()
    const all = await Array.fromAsync(events(step.id))
    expect(all.map(({ event }) => event)).toEqual(['started', 'truncated', 'ended'])
    expect(all.at(-1)).toMatchObject({ step: { status: 'completed', truncated: true } })
  })

  it('stop where a running step stands when nobody wants to follow', async () => {
    world.plane.output = [{ stream: 'stdout', bytes: Buffer.from('one') }]
    const step = await run()
    const node = world.plane.commands.get(step.id)
    if (node) world.plane.commands.set(step.id, { ...node, outputBytes: 3 })
    const all = await Array.fromAsync(events(step.id, { follow: false }))
    expect(all.map(({ event }) => event)).toEqual(['started', 'output'])
    world.plane.endCommand(step.id, {})
  })
})
