import { statSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeData, encodeMessage, FrameDecoder, MAX_FRAME_BYTES } from '@airlock/contract/guest'
import { createLog, newId, systemClock, waitFor } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { GuestLink } from './guest-link.ts'
import { answerNext, nextRequest } from './testing/heard-requests.ts'
import { openVault } from './testing/open-vault.ts'
import { collect } from './testing/real-guest.ts'
import { UnixListener } from './unix-listener.ts'

/** Speaks to a link as a guest that lies would. */
describe('a link to a hostile guest', () => {
  let root: string
  let link: GuestLink
  const lines: string[] = []

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'airlock-link-'))
    const log = createLog({ process: 'test', level: 'warn', write: (line) => void lines.push(line) })
    link = new GuestLink({
      sandbox: 'sbx_test',
      listener: new UnixListener(join(root, 'control')),
      spoolDir: join(root, 'spool'),
      vault: (await openVault(join(root, 'vault'))).of('acme'),
      clock: systemClock,
      log,
      failpoint: async () => {},
      onOverdue: () => {},
      usageOf: async () => null,
      strainOf: async () => null,
      isDiskFull: async () => false,
    })
    await link.listen()
  })
  afterEach(async () => {
    await link.close()
    await rm(root, { recursive: true, force: true })
    lines.length = 0
  })

  const dial = async (): Promise<Socket> => {
    const socket = connect(join(root, 'control', 'guest.sock'))
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }
  const hello = encodeMessage({ type: 'hello', protocol: 1, commands: [] })
  const attach = async (): Promise<Socket> => {
    const socket = await dial()
    socket.write(hello)
    await link.waitForGuest(AbortSignal.timeout(5000))
    return socket
  }
  const spec = (maxOutputBytes = 10) => ({
    id: newId('cmd'),
    argv: ['x'],
    cwd: '/',
    env: {},
    stdin: 'none' as const,
    timeoutMs: 60_000,
    maxOutputBytes,
  })
  const accept = async (socket: Socket, maxOutputBytes?: number): Promise<string> => {
    const { id } = spec()
    answerNext(socket, { startedMs: 1 })
    await link.commands.run({ ...spec(maxOutputBytes), id })
    return id
  }

  it('has a socket that the guest can dial and a directory that nobody can list', async () => {
    expect((await stat(join(root, 'control'))).mode & 0o777).toBe(0o711)
    expect((await stat(join(root, 'control', 'guest.sock'))).mode & 0o777).toBe(0o666)
  })

  const nonsense: readonly (readonly [string, Buffer])[] = [
    ['a frame that is too long', Buffer.from([0xff, 0xff, 0xff, 0xff, 1])],
    ['a frame of unknown kind', Buffer.from([0, 0, 0, 1, 9])],
    ['text that is not JSON', Buffer.from([0, 0, 0, 2, 1, 0x7b])],
    ['a message of unknown type', encodeMessage({ type: 'sudo' })],
    ['a message with an unknown field', encodeMessage({ type: 'ack', channel: 1, offset: 1, more: true })],
    ['a second hello', hello],
    ['an exit code that cannot be', encodeMessage({ type: 'exited', channel: 1, end: { exitCode: 999 } })],
  ]
  it.each(nonsense)('closes the connection on %s and lets the guest dial again', async (_name, bytes) => {
    const socket = await attach()
    const closed = once(socket, 'close')
    socket.write(bytes)
    socket.resume()
    await closed
    expect(lines.join('')).toContain('the connection of a guest ended')
    await attach()
    expect(link.isAttached).toBe(true)
  })

  it.each([
    ['data', encodeData({ channel: 1, stream: 1, offset: 0, bytes: Buffer.from('x') })],
    ['a message', encodeMessage({ type: 'ack', channel: 1, offset: 1 })],
    ['a hello of another version', encodeMessage({ type: 'hello', protocol: 2, commands: [] })],
  ])('does not attach a guest that begins with %s', async (_name, bytes) => {
    const socket = await dial()
    const closed = once(socket, 'close')
    socket.write(bytes)
    socket.resume()
    await closed
    expect(link.isAttached).toBe(false)
  })

  it('lets a new connection replace the old one', async () => {
    const first = await attach()
    const closed = once(first, 'close')
    first.resume()
    const second = await dial()
    second.write(hello)
    await closed
    await link.waitForGuest(AbortSignal.timeout(5000))
    answerNext(second, {})
    expect(await link.files.operate({ op: 'file.mkdir', path: '/x', parents: true })).toEqual({})
  })

  it('cuts output at the cap of the caller, whatever the guest sends or says', async () => {
    const socket = await attach()
    const id = await accept(socket, 10)
    for (let i = 0; i < 100; i++)
      socket.write(encodeData({ channel: 1, stream: 1, offset: i * 3, bytes: Buffer.from('abc') }))
    const end = { exitCode: 0, signal: null, timedOut: false, durationMs: 1 }
    socket.write(encodeMessage({ type: 'exited', channel: 1, end }))
    socket.write(encodeMessage({ type: 'closed', channel: 1, produced: 1, truncated: false }))
    const { stdout, command } = await collect(link.commands.output(id, { from: 0 }))
    expect([String(stdout), command.truncated, command.outputBytes]).toEqual(['abcabcabca', true, 10])
    const sizes = (await readdir(join(root, 'spool'))).map((name) => statSync(join(root, 'spool', name)).size)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2000)
  })

  it.each([
    ['with a gap', { channel: 1, stream: 1, offset: 5, bytes: Buffer.from('x') }],
    ['of a stream that is none', { channel: 1, stream: 7, offset: 0, bytes: Buffer.from('x') }],
  ])('closes the connection on output %s', async (_name, data) => {
    const socket = await attach()
    await accept(socket)
    const closed = once(socket, 'close')
    socket.write(encodeData(data))
    await closed
  })

  it('refuses an impossible answer, and the question is not left waiting', async () => {
    const socket = await attach()
    answerNext(socket, { size: -1 })
    await expect(link.files.operate({ op: 'file.stat', path: '/' })).rejects.toMatchObject({ code: 'internal' })
  })

  it('takes no more of a file than it was told to expect, nor beyond the window', async () => {
    const socket = await attach()
    answerNext(socket, { size: 3 })
    const { bytes } = await link.files.read('/x')
    socket.write(encodeData({ channel: 1, stream: 0, offset: 0, bytes: Buffer.from('abcdef') }))
    await expect(Array.fromAsync(bytes)).rejects.toMatchObject({ code: 'internal' })
    answerNext(socket, { size: 10 * MAX_FRAME_BYTES })
    const flood = await link.files.read('/x')
    const closed = once(socket, 'close')
    const chunk = Buffer.alloc(MAX_FRAME_BYTES - 100)
    socket.write(encodeData({ channel: 2, stream: 0, offset: 0, bytes: chunk }))
    await closed
    await expect(Array.fromAsync(flood.bytes)).rejects.toMatchObject({ code: 'guest_lost' })
  })

  it('keeps a command on disk before the guest is asked for it', async () => {
    const socket = await attach()
    const asked = spec()
    const onDisk = nextRequest(socket).then(() => readFile(join(root, 'spool', 'journal.ndjson'), 'utf8'))
    const run = link.commands.run(asked).catch((error: unknown) => error)
    expect(JSON.parse(await onDisk)).toMatchObject({
      meta: { channel: 1, command: { id: asked.id, state: 'running' } },
    })
    await link.close()
    expect(await run).toMatchObject({ code: 'sandbox_ended' })
  })

  it('ends what nobody asked for', async () => {
    const socket = await dial()
    const heard: unknown[] = []
    const decoder = new FrameDecoder()
    socket.on('data', (chunk) => {
      for (const frame of decoder.push(chunk)) if (frame.kind === 'message') heard.push(frame.json)
    })
    const state = { id: newId('cmd'), channel: 9, produced: 0, truncated: false, end: null, closed: false }
    socket.write(encodeMessage({ type: 'hello', protocol: 1, commands: [state] }))
    await waitFor(() => (heard.length >= 2 ? true : undefined), { signal: AbortSignal.timeout(5000), everyMs: 10 })
    expect(heard).toEqual([
      { type: 'attach', received: [] },
      { type: 'request', id: 1, request: { op: 'signal', channel: 9, signal: 'SIGKILL' } },
    ])
  })
})
