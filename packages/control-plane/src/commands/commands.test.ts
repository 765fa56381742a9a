import { AirlockError, type CommandEvent, type NodeCommand, nodeCommandSpec } from '@airlock/contract'
import { newId, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findCommand } from '../store/commands.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aCommand, aSandbox, CALLER, caller, World } from '../testing/world.ts'

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

const forever = new AbortController().signal
const run = async (asked = aCommand()) => (await world.lifecycle.commands.run(CALLER, sandbox, asked)).noun
const row = (command: string) => world.store.query((db) => findCommand(db, { sandbox, command }))
const failure = async (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )
const story = async () => (await world.story(sandbox)).slice(2)

function events(command: string, asked: { from?: number; follow?: boolean } = {}): AsyncGenerator<CommandEvent> {
  const of = { sandbox, command }
  return world.lifecycle.commands.events(CALLER, of, { from: 0, follow: true, signal: forever, ...asked })
}

const RUNNING: Omit<NodeCommand, 'id'> = {
  state: 'running',
  exitCode: null,
  signal: null,
  timedOut: false,
  truncated: false,
  outputBytes: 0,
  startedAt: 1_000_000,
  endedAt: null,
}

describe('running a command', () => {
  it('records what was asked before and how it ended after, without values of its environment', async () => {
    const command = await run(aCommand({ shell: 'echo $A', env: { A: 'hush' }, cwd: '/tmp', timeoutMs: 50 }))
    expect(command).toMatchObject({ argv: ['/bin/sh', '-c', 'echo $A'], cwd: '/tmp', state: 'running', endedAt: null })
    world.plane.endCommand(command.id, { exitCode: 3, outputBytes: 9 })
    const ended = await world.lifecycle.commands.wait(CALLER, { sandbox, command: command.id }, forever)
    expect(ended).toEqual({
      ...command,
      state: 'exited',
      exitCode: 3,
      outputBytes: 9,
      startedAt: new Date(1_000_000).toISOString(),
      endedAt: new Date(1_000_005).toISOString(),
      durationMs: 5,
    })
    const [requested, done] = (await world.evidence(sandbox)).slice(2)
    expect(requested).toMatchObject({ point: 'command.run', status: 'requested', actor: 'key:test' })
    expect(requested?.payload).toEqual({
      requestId: 'req_test',
      command: command.id,
      argv: ['/bin/sh', '-c', 'echo $A'],
      cwd: '/tmp',
      env: ['A'],
      timeoutMs: 50,
    })
    expect(done).toMatchObject({ point: 'command.run', status: 'done', durationMs: 5 })
    expect(done?.payload).toMatchObject({ command: command.id, exitCode: 3, outputBytes: 9 })
  })

  it('does not happen when its record cannot be written', async () => {
    world.refused = ['command.run requested']
    expect(await failure(run())).toMatchObject({ code: 'evidence_unavailable' })
    expect(world.plane.commands.size).toBe(0)
  })

  it.each(['executable_not_found', 'too_many_commands', 'not_a_directory'] as const)(
    'that the data plane refuses with %s leaves no command',
    async (code) => {
      world.plane.script('POST /sandboxes/:id/commands', () => Promise.reject(new AirlockError(code)))
      expect(await failure(run())).toMatchObject({ code })
      const page = await world.lifecycle.commands.list(CALLER, sandbox, { limit: 10 })
      expect([page, await story()]).toEqual([
        { items: [], nextCursor: null },
        ['command.run requested', 'command.run failed'],
      ])
    },
  )

  it('that nobody answered for is found again when it runs, and lost when it does not', async () => {
    world.plane.script('POST /sandboxes/:id/commands', () => 'hang-up')
    const { noun, events } = await world.lifecycle.commands.run(CALLER, sandbox, { ...aCommand(), follow: forever })
    expect(noun).toMatchObject({ state: 'running' })
    expect((await Array.fromAsync(events)).at(-1)).toMatchObject({ event: 'ended', command: { state: 'lost' } })
    expect(await row(noun.id)).toMatchObject({ state: 'lost' })
    expect(await story()).toEqual(['command.run requested', 'command.run unknown'])
  })

  it.each(['timeout', 'guest_lost'] as const)(
    'whose guest answers its start late (%s) is followed to its end',
    async (code) => {
      world.plane.script('POST /sandboxes/:id/commands', ({ body }) => {
        const { id } = nodeCommandSpec.parse(JSON.parse(String(body)))
        world.plane.commands.set(id, { ...RUNNING, id })
        throw new AirlockError(code)
      })
      const { id, state } = await run()
      expect(state).toBe('running')
      world.plane.endCommand(id, { exitCode: 3 })
      await expect.poll(() => row(id)).toMatchObject({ state: 'exited', exitCode: 3 })
      expect(await story()).toEqual(['command.run requested', 'command.run done'])
    },
  )

  it('whose guest had died before it was asked is refused', async () => {
    world.plane.script('POST /sandboxes/:id/commands', () => Promise.reject(new AirlockError('sandbox_not_active')))
    expect(await failure(run())).toMatchObject({ code: 'guest_lost' })
    expect(await story()).toEqual(['command.run requested', 'command.run failed'])
  })

  it('whose caller leaves before it reads anything is left to the watch', async () => {
    const leave = new AbortController()
    const { noun } = await world.lifecycle.commands.run(CALLER, sandbox, { ...aCommand(), follow: leave.signal })
    leave.abort()
    world.plane.endCommand(noun.id, { exitCode: 3 })
    await expect.poll(() => row(noun.id)).toMatchObject({ state: 'exited', exitCode: 3 })
  })

  it('in a sandbox that broke down says so, and in one that ended too', async () => {
    world.plane.sandboxes.clear()
    expect(await failure(run())).toMatchObject({ code: 'guest_lost' })
    await world.sweep()
    expect(await failure(run())).toMatchObject({ code: 'sandbox_ended' })
    expect(await failure(events('x').next())).toMatchObject({ code: 'sandbox_ended' })
  })

  it('of another is not found', async () => {
    const { id } = await run()
    for (const who of [caller({ tenant: 'other' }), caller({ agents: ['other'] })]) {
      const { commands, files } = world.lifecycle
      for (const work of [
        commands.run(who, sandbox, aCommand()),
        commands.get(who, { sandbox, command: id }),
        commands.list(who, sandbox, { limit: 1 }),
        commands.signal(who, { sandbox, command: id }, 'SIGKILL'),
        files.read(who, sandbox, { path: 'x', signal: forever }),
        files.operate(who, sandbox, { op: 'file.stat', path: 'x' }),
      ])
        expect(await failure(work)).toMatchObject({ code: 'sandbox_not_found' })
    }
    const other = (await world.lifecycle.creation.create(CALLER, aSandbox())).id
    const elsewhere = world.lifecycle.commands.get(CALLER, { sandbox: other, command: id })
    expect(await failure(elsewhere)).toMatchObject({ code: 'command_not_found' })
  })

  it('goes on being followed when the data plane restarts', async () => {
    const { id } = await run()
    await world.plane.die()
    await world.plane.listen()
    world.plane.endCommand(id, { signal: 'SIGKILL', exitCode: null })
    const ended = await world.lifecycle.commands.wait(CALLER, { sandbox, command: id }, forever)
    expect(ended).toMatchObject({ state: 'exited', signal: 'SIGKILL' })
  })

  it('can be waited for no longer than the caller likes', async () => {
    const { id } = await run()
    const leave = new AbortController()
    const waiting = world.lifecycle.commands.wait(CALLER, { sandbox, command: id }, leave.signal)
    leave.abort(new AirlockError('timeout', 'enough'))
    expect(await failure(waiting)).toMatchObject({ message: 'enough' })
    expect(await row(id)).toMatchObject({ state: 'running' })
  })

  it('that has ended takes no signal and no stdin', async () => {
    const { id } = await run()
    const of = { sandbox, command: id }
    world.plane.endCommand(id, {})
    await world.lifecycle.commands.wait(CALLER, of, forever)
    const { commands } = world.lifecycle
    expect(await failure(commands.signal(CALLER, of, 'SIGTERM'))).toMatchObject({ code: 'command_ended' })
    const input = { bytes: empty(), end: true }
    expect(await failure(commands.writeStdin(CALLER, of, input))).toMatchObject({ code: 'command_ended' })
    const nowhere = { sandbox, command: newId('cmd') }
    expect(await failure(commands.signal(CALLER, nowhere, 'SIGTERM'))).toMatchObject({ code: 'command_not_found' })
  })
})

describe('the events of a command', () => {
  beforeEach(() => {
    world.plane.output = [
      { stream: 'stdout', bytes: Buffer.from('grüße') },
      { stream: 'stderr', bytes: Buffer.from([0xff, 0xfe]) },
      { stream: 'stdout', bytes: Buffer.from('!') },
    ]
  })

  const OUTPUT = [
    { event: 'output', stream: 'stdout', offset: 7, text: 'grüße' },
    { event: 'output', stream: 'stderr', offset: 9, base64: '//4=' },
    { event: 'output', stream: 'stdout', offset: 10, text: '!' },
  ]

  it('begin with its start and end with its end, and lose no byte', async () => {
    const command = await run(aCommand({ argv: ['x'], maxOutputBytes: 10 }))
    const all = Array.fromAsync(events(command.id))
    world.plane.endCommand(command.id, { truncated: true, outputBytes: 10 })
    const ended = await world.lifecycle.commands.wait(CALLER, { sandbox, command: command.id }, forever)
    expect(await all).toEqual([
      { event: 'started', command },
      ...OUTPUT,
      { event: 'truncated', limitBytes: 10 },
      { event: 'ended', command: ended },
    ])
    expect(await world.lifecycle.commands.get(CALLER, { sandbox, command: command.id })).toEqual(ended)
  })

  it('go on where a reader stopped, also in the middle of a chunk', async () => {
    const { id } = await run()
    world.plane.endCommand(id, {})
    const kinds = (await Array.fromAsync(events(id, { from: 4 }))).slice(1, -1)
    expect(kinds).toEqual([{ event: 'output', stream: 'stdout', offset: 7, text: 'ße' }, ...OUTPUT.slice(1)])
  })

  it('stop where the output stands when they are not followed', async () => {
    const { id } = await run()
    world.plane.commands.set(id, { ...(await nodeCommand(id)), outputBytes: 10 })
    expect((await Array.fromAsync(events(id, { follow: false }))).slice(1)).toEqual(OUTPUT)
    expect(await Array.fromAsync(events(id, { follow: false, from: 10 }))).toHaveLength(1)
  })

  it('come once each over a restart of the data plane', async () => {
    const { id } = await run()
    const stream = events(id)
    const seen = [await stream.next(), await stream.next(), await stream.next(), await stream.next()]
    await world.plane.die()
    await world.plane.listen()
    world.plane.output = [...world.plane.output, { stream: 'stdout', bytes: Buffer.from('more') }]
    world.plane.endCommand(id, {})
    const rest = await Array.fromAsync(stream)
    expect(seen.slice(1).map(({ value }) => value)).toEqual(OUTPUT)
    expect(rest).toMatchObject([{ event: 'output', offset: 14, text: 'more' }, { event: 'ended' }])
  })

  it('end with a lost command when the sandbox ends', async () => {
    const { id } = await run()
    const stream = events(id)
    await stream.next()
    await world.lifecycle.termination.terminate(sandbox, { reason: 'terminated', actor: 'system' })
    expect((await Array.fromAsync(stream)).at(-1)).toMatchObject({ event: 'ended', command: { state: 'lost' } })
  })

  it('come with the call that starts it', async () => {
    const { noun, events } = await world.lifecycle.commands.run(CALLER, sandbox, { ...aCommand(), follow: forever })
    const all = Array.fromAsync(events)
    world.plane.endCommand(noun.id, {})
    expect((await all).at(-1)).toMatchObject({ event: 'ended', command: { id: noun.id, state: 'exited' } })
    expect(world.plane.calls.filter((call) => call.includes('/commands'))).toEqual([
      `POST /sandboxes/${sandbox}/commands`,
    ])
  })

  it('are left to the watch by a reader who leaves, and the result is written all the same', async () => {
    const { noun, events } = await world.lifecycle.commands.run(CALLER, sandbox, { ...aCommand(), follow: forever })
    const { id } = noun
    await events.next()
    await events.next()
    await events.return(undefined)
    world.plane.endCommand(id, { exitCode: 3 })
    const ended = waitFor(async () => ((await row(id))?.state === 'running' ? undefined : row(id)), {
      signal: AbortSignal.timeout(30_000),
      everyMs: 10,
    })
    expect(await ended).toMatchObject({ state: 'exited', exitCode: 3 })
  })

  it('that are broken are an error, not an end', async () => {
    const { id } = await run(aCommand({ argv: ['true'], background: true }))
    world.plane.script('GET /sandboxes/:id/commands/:cid/output', ({ response }) => {
      response.end(Buffer.from([0xff, 0xff, 0xff, 0xff, 1]))
      return undefined
    })
    expect(await failure(Array.fromAsync(events(id)))).toMatchObject({ code: 'internal' })
  })

  const nodeCommand = async (id: string) => {
    const found = world.plane.commands.get(id)
    if (!found) throw new TypeError(id)
    return found
  }
})

async function* empty(): AsyncGenerator<Buffer> {}
