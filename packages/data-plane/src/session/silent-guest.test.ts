import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeMessage, type GuestCommandState } from '@airlock/contract/guest'
import { createLog, deadline, newId, systemClock, waitFor } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { GuestLink } from './guest-link.ts'
import { PATIENCE } from './patience.ts'
import { answerNext, nextRequest } from './testing/heard-requests.ts'
import { openVault } from './testing/open-vault.ts'
import { UnixListener } from './unix-listener.ts'

const KILL = { op: 'signal', channel: 1, signal: 'SIGKILL' }

/** Speaks to a link as a guest that answers what a test says, and nothing else. */
describe('a link to a guest that answers little', () => {
  let root: string
  let link: GuestLink
  let overdue: string[]

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'airlock-link-'))
    overdue = []
    link = new GuestLink({
      sandbox: 'sbx_test',
      listener: new UnixListener(join(root, 'control')),
      spoolDir: join(root, 'spool'),
      vault: (await openVault(join(root, 'vault'))).of('acme'),
      clock: systemClock,
      log: createLog({ process: 'test', level: 'silent', write: () => {} }),
      failpoint: async () => {},
      patience: { ...PATIENCE, startMs: 20, silenceMs: 300, commandGraceMs: 20, obeyMs: 20 },
      onOverdue: (id) => overdue.push(id),
      usageOf: async () => null,
      strainOf: async () => null,
      isDiskFull: async () => false,
    })
    await link.listen()
  })
  afterEach(async () => {
    await link.close()
    await rm(root, { recursive: true, force: true })
  })

  const dial = async (commands: readonly GuestCommandState[] = []): Promise<Socket> => {
    const socket = connect(join(root, 'control', 'guest.sock'))
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(encodeMessage({ type: 'hello', protocol: 1, commands }))
    return socket
  }
  const attach = async (): Promise<Socket> => {
    const socket = await dial()
    await link.waitForGuest(deadline(100_000))
    return socket
  }
  const run = async (timeoutMs = 60_000): Promise<string> => {
    const spec = { argv: ['x'], cwd: '/', env: {}, stdin: 'open' as const, timeoutMs, maxOutputBytes: 10 }
    return (await link.commands.run({ id: newId('cmd'), ...spec })).id
  }
  const isOverdue = async () =>
    waitFor(() => (overdue.length > 0 ? true : undefined), { signal: deadline(100_000), everyMs: 10 })

  it('asks it to kill a command past its deadline, and gives it up when it answers nothing', async () => {
    const socket = await attach()
    answerNext(socket, { startedMs: 1 }, 'run')
    const id = await run(1)
    expect((await nextRequest(socket, 'signal')).request).toEqual(KILL)
    expect(overdue).toEqual([])
    await isOverdue()
    expect(overdue).toEqual([id])
    expect(link.commands.get(id)).toMatchObject({ state: 'lost', timedOut: true, cause: 'timeout' })
  })

  it('gives it up when it answers the kill and does not end the command', async () => {
    const socket = await attach()
    answerNext(socket, { startedMs: 1 }, 'run')
    answerNext(socket, {}, 'signal')
    const id = await run(1)
    await isOverdue()
    expect(overdue).toEqual([id])
  })

  it('calls a command that it killed for its deadline timed out', async () => {
    const socket = await attach()
    answerNext(socket, { startedMs: 1 }, 'run')
    const id = await run(1)
    await nextRequest(socket, 'signal')
    const end = { exitCode: null, signal: 'SIGKILL', timedOut: false, durationMs: 1 }
    socket.write(encodeMessage({ type: 'exited', channel: 1, end }))
    socket.write(encodeMessage({ type: 'closed', channel: 1, produced: 0, truncated: false }))
    expect(await link.commands.wait(id)).toMatchObject({ state: 'exited', timedOut: true, cause: 'timeout' })
    expect(overdue).toEqual([])
  })

  it('gives a start up that it does not answer, and kills the command should it begin after all', async () => {
    const socket = await attach()
    const asked = nextRequest(socket, 'run')
    const id = await run()
    expect(await link.commands.wait(id)).toMatchObject({ state: 'lost', timedOut: false })
    const kill = nextRequest(socket, 'signal')
    socket.write(encodeMessage({ type: 'result', id: (await asked).id, result: { startedMs: 1 } }))
    expect((await kill).request).toEqual(KILL)
    expect(overdue).toEqual([])
  })

  it('kills a command whose start was given up when the guest comes back with it', async () => {
    await attach()
    const id = await run()
    await link.commands.wait(id)
    const state = { id, channel: 1, produced: 0, truncated: false, end: null, closed: false }
    expect((await nextRequest(await dial([state]), 'signal')).request).toEqual(KILL)
  })

  it('asks for no start that was given up over the next connection', async () => {
    const first = await attach()
    const id = await run()
    await link.commands.wait(id)
    first.destroy()
    const second = await dial()
    const next = nextRequest(second)
    await link.waitForGuest(deadline(100_000))
    // Nobody answers it.
    void link.sessions.list().catch(() => undefined)
    expect((await next).request).toEqual({ op: 'session.list' })
  })

  it('asks for a start again over the next connection, also after it was reported as running', async () => {
    const first = await attach()
    const id = await run()
    first.destroy()
    const second = await dial()
    expect((await nextRequest(second, 'run')).request).toMatchObject({ op: 'run', command: { id } })
  })

  it('gives a start no deadline while the sandbox is paused', async () => {
    await attach()
    const id = await run()
    link.hold()
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(link.commands.get(id).state).toBe('running')
    link.release(400, 400)
    expect(await link.commands.wait(id)).toMatchObject({ state: 'lost' })
  })
})
