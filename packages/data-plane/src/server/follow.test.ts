import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AirlockError, type FollowedCall } from '@airlock/contract'
import { encodeMessage, type Frame, FrameDecoder } from '@airlock/contract/guest'
import { createLog, newId, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RealGuest } from '../session/testing/real-guest.ts'
import { serveFollowed } from '@airlock/wire'
import { startFollowed } from './start-followed.ts'

const SANDBOX = newId('sbx')
const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('a connection of followed calls', () => {
  let guest: RealGuest
  let dir: string
  let server: Server
  beforeAll(async () => {
    guest = await RealGuest.start()
    dir = mkdtempSync(join(tmpdir(), 'airlock-follow-'))
    const link = (id: string) => {
      if (id !== SANDBOX) throw new AirlockError('sandbox_not_found')
      return guest.link
    }
    const runs = {
      run: async (id: string, spec: Parameters<typeof guest.link.commands.run>[0]) => link(id).commands.run(spec),
      step: async (id: string, ...[session, spec]: Parameters<typeof guest.link.sessions.step>) =>
        link(id).sessions.step(session, spec),
    }
    const start = async (call: FollowedCall) => startFollowed({ runs, registry: { link } }, call)
    const log = createLog({ process: 'test', level: 'silent', write: () => {} })
    server = createServer((socket) => serveFollowed(socket, { start, log })).listen(join(dir, 'follow.sock'))
    await once(server, 'listening')
  })
  afterAll(async () => {
    server.close()
    await guest.stop()
    rmSync(dir, { recursive: true })
  })

  const dial = async (): Promise<Socket> => {
    const socket = connect(join(dir, 'follow.sock'))
    await once(socket, 'connect')
    return socket
  }
  const shell = (line: string, sandbox = SANDBOX) => ({
    kind: 'command',
    sandbox,
    command: guest.spec(['/bin/sh', '-c', line]),
  })

  it('carries one call after another, each from its taking to its end', async () => {
    const socket = await dial()
    for (const [word, exitCode] of [
      ['one', 0],
      ['two', 3],
    ] as const) {
      const call = shell(`echo ${word}; exit ${exitCode}`)
      socket.write(encodeMessage(call))
      const frames = await framesUntilEnd(socket)
      expect(frames.map(describeFrame)).toEqual([
        '{"taken":true}',
        `${word}\n`,
        `${call.command.id} exited ${exitCode}`,
      ])
    }
    socket.destroy()
  })

  it('says that a long one was taken before it says anything', async () => {
    const socket = await dial()
    socket.write(encodeMessage(shell('sleep 0.5; echo late')))
    const decoder = new FrameDecoder()
    const [first] = await once(socket, 'data')
    expect(decoder.push(first).map(describeFrame)).toEqual(['{"taken":true}'])
    socket.destroy()
  })

  it('refuses what cannot be, and goes on', async () => {
    const socket = await dial()
    for (const [call, code] of [
      [shell('true', newId('sbx')), 'sandbox_not_found'],
      [{ sandbox: SANDBOX }, 'invalid_request'],
      [{ ...shell('true'), command: guest.spec(['/no/such/program']) }, 'executable_not_found'],
    ] as const) {
      socket.write(encodeMessage(call))
      const [answer] = await once(socket, 'data')
      expect(new FrameDecoder().push(answer)).toMatchObject([{ json: { error: { code } } }])
    }
    socket.write(encodeMessage(shell('true')))
    expect((await framesUntilEnd(socket)).length).toBe(2)
    socket.destroy()
  })

  it('is left by its caller without any harm to what runs', async () => {
    const socket = await dial()
    const call = shell('echo begun; sleep 0.5; exit 4')
    socket.write(encodeMessage(call))
    await once(socket, 'data')
    socket.destroy()
    expect(await guest.link.commands.wait(call.command.id)).toMatchObject({ state: 'exited', exitCode: 4 })
  })

  it('breaks when a call comes before the end of another', async () => {
    const socket = await dial()
    const closed = once(socket, 'close')
    const first = shell('sleep 0.3')
    socket.write(encodeMessage(first))
    await waitFor(() => guest.link.commands.list().find(({ id }) => id === first.command.id), {
      signal: AbortSignal.timeout(10_000),
      everyMs: 10,
    })
    socket.write(encodeMessage(shell('true')))
    socket.resume()
    await closed
    expect(await guest.link.commands.wait(first.command.id)).toMatchObject({ exitCode: 0 })
  })
})

async function framesUntilEnd(socket: Socket): Promise<readonly Frame[]> {
  const decoder = new FrameDecoder()
  const frames: Frame[] = []
  while (!frames.some((frame) => frame.kind === 'message' && 'state' in Object(frame.json))) {
    const [chunk] = await once(socket, 'data')
    frames.push(...decoder.push(chunk))
  }
  return frames
}

function describeFrame(frame: Frame): string {
  if (frame.kind === 'data') return frame.bytes.toString()
  const { id, state, exitCode } = Object(frame.json)
  return state === undefined ? JSON.stringify(frame.json) : `${id} ${state} ${exitCode}`
}
