import { newId, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PATIENCE } from './patience.ts'
import { RealGuest } from './testing/real-guest.ts'

const isRoot = process.getuid?.() === 0
const soon = () => ({ signal: AbortSignal.timeout(100_000), everyMs: 10 })
/** A guest that stands still is late at once. */
const SHORT = { ...PATIENCE, startMs: 50, commandGraceMs: 50 }

describe.skipIf(!isRoot)('a guest that is late', () => {
  let guest: RealGuest
  beforeAll(async () => {
    guest = await RealGuest.start()
    await guest.link.close()
    guest.link = guest.newLink({ patience: SHORT })
    await guest.link.listen()
    await guest.link.waitForGuest(AbortSignal.timeout(100_000))
  })
  afterAll(async () => {
    guest.wake()
    await guest.stop()
  })

  const isRunning = (id: string) => (guest.link.commands.get(id).state === 'running' ? undefined : true)

  it('is given the text of a command that it starts late', async () => {
    guest.suspend()
    const id = await guest.start(['cat'], { stdin: { text: 'given' } })
    expect(guest.link.commands.get(id).state).toBe('running')
    guest.wake()
    const { stdout, command } = await guest.finish(id)
    expect([String(stdout), command.exitCode]).toEqual(['given', 0])
  })

  it('hears of signals and of stdin after it has started the command', async () => {
    guest.suspend()
    const cat = await guest.start(['cat'], { stdin: 'open' })
    const sleep = await guest.start(['sleep', '60'])
    const written = guest.link.commands.writeStdin(cat, pieces('written'), true)
    const signalled = guest.link.commands.signal(sleep, 'SIGTERM')
    guest.wake()
    await Promise.all([written, signalled])
    expect(String((await guest.finish(cat)).stdout)).toBe('written')
    expect(await guest.link.commands.wait(sleep)).toMatchObject({ signal: 'SIGTERM', timedOut: false })
  })

  it('has all of the timeout for a command that it starts late', async () => {
    let now = Date.now()
    await guest.link.close()
    guest.link = guest.newLink({ patience: SHORT, clock: { now: () => now } })
    await guest.link.listen()
    await guest.link.waitForGuest(AbortSignal.timeout(100_000))
    guest.suspend()
    const id = await guest.start(['/bin/sh', '-c', 'sleep 0.5; echo done'], { timeoutMs: 5000 })
    now += 100_000
    guest.wake()
    const { stdout } = await guest.finish(id)
    expect([String(stdout), guest.overdue]).toEqual(['done\n', []])
  })

  it('ends a command whose deadline passed meanwhile, and is not lost for that', async () => {
    // Long enough that the guest stands still before it ends the command itself.
    const id = await guest.start(['sleep', '60'], { timeoutMs: 2000 })
    // A busy machine makes every guest late: the signal is taken once the guest has answered the start.
    await guest.link.commands.signal(id, 'SIGCONT')
    guest.suspend()
    // The host has asked for its end by then, and goes on waiting.
    const isAsked = () => guest.logged.some((line) => line.includes('killing a command that is past its deadline'))
    await waitFor(() => isAsked() || undefined, soon())
    guest.wake()
    expect(await guest.link.commands.wait(id)).toMatchObject({ state: 'exited', signal: 'SIGKILL', timedOut: true })
    expect(guest.overdue).toEqual([])
  })

  it('runs a step that it starts late in its session', async () => {
    const session = newId('ses')
    await guest.link.sessions.open({ id: session, runtime: 'bash', cwd: guest.work, env: {} })
    guest.suspend()
    const code = { code: 'sleep 0.3; echo late', env: {}, stdin: '', timeoutMs: 20_000, maxOutputBytes: 100 }
    const { id } = await guest.link.sessions.step(session, { id: newId('stp'), ...code })
    guest.wake()
    expect(String((await guest.finish(id)).stdout)).toBe('late\n')
    await guest.link.sessions.close(session)
  })

  it('and refuses a command leaves it lost, and no more', async () => {
    guest.suspend()
    const id = await guest.start(['no-such-program'])
    guest.wake()
    await waitFor(() => isRunning(id), soon())
    expect(await guest.link.commands.wait(id)).toMatchObject({ state: 'lost', timedOut: false })
    expect(String((await guest.sh('echo on')).stdout)).toBe('on\n')
  })
})

async function* pieces(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text)
}
