import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { deadline, waitFor } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openBridge } from './bridge.ts'

let dir: string
let path: string
let bridge: Server
let url: string
let door: Server | undefined

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-bridge-'))
  path = join(dir, 'llm.sock')
  bridge = await openBridge({ port: 0, socket: path })
  url = `http://127.0.0.1:${portOf(bridge)}`
})
afterEach(async () => {
  bridge.close()
  door?.close()
  door = undefined
  rmSync(dir, { recursive: true })
})

describe('a bridge to a door', () => {
  it('is at the loopback address alone', () => {
    expect(bridge.address()).toMatchObject({ address: '127.0.0.1' })
  })

  it('carries bytes both ways as they are, and the end of each way by itself', async () => {
    const sent = randomBytes(3_000_000)
    await listen((socket) => socket.pipe(socket))
    const client = connect({ port: portOf(bridge), host: '127.0.0.1', allowHalfOpen: true })
    client.end(sent)
    const got: Buffer[] = []
    for await (const chunk of client) got.push(chunk as Buffer)
    expect(Buffer.concat(got).equals(sent)).toBe(true)
  })

  it('passes an event on when it comes, not when the answer ends', async () => {
    let finish = (): void => {}
    await serve((_request, response) => {
      response.write('first')
      finish = () => response.end('last')
    })
    const answer = await fetch(url)
    const reader = answer.body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first')
    finish()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('last')
  })

  it('answers at once when the door is away, and passes when it is back', async () => {
    const refused = await fetch(url)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toMatchObject({ error: { code: 'door_unavailable' } })
    await serve((_request, response) => response.end('back'))
    expect(await (await fetch(url)).text()).toBe('back')
  })

  it('breaks the answer off when the door breaks off', async () => {
    await serve((_request, response) => {
      response.write('half')
      setImmediate(() => response.destroy())
    })
    await expect(fetch(url).then(async (answer) => answer.text())).rejects.toThrow('terminated')
  })

  it('hangs up at the door when the client is gone', async () => {
    let isGone: true | undefined
    await listen((socket) => socket.on('end', () => (isGone = true)).resume())
    const client = connect(portOf(bridge), '127.0.0.1')
    client.on('error', () => {})
    await new Promise((resolve) => client.once('connect', resolve))
    client.write('hello')
    client.resetAndDestroy()
    await waitFor(() => isGone, { signal: deadline(100_000), everyMs: 20 })
  })

  it('reads no faster from the door than the client does', async () => {
    let taken = 0
    await listen((socket) => {
      const chunk = Buffer.alloc(65_536)
      const took = (): void => void (taken += chunk.length)
      const pump = (): void => {
        for (let at = 0; at < 1000; at++) if (!socket.write(chunk, took)) break
        socket.once('drain', pump)
      }
      pump()
    })
    const client = connect(portOf(bridge), '127.0.0.1')
    client.pause()
    let before = -1
    await waitFor(
      async () => {
        if (taken > 0 && taken === before) return true
        before = taken
        await sleep(200)
        return undefined
      },
      { signal: deadline(100_000), everyMs: 10 },
    )
    expect(taken).toBeLessThan(32_000_000)
    client.destroy()
  })
})

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

async function listen(onSocket: (socket: Socket) => unknown): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    onSocket(socket)
  })
  await started(server)
}

async function serve(onRequest: Parameters<typeof createHttpServer>[1]): Promise<void> {
  await started(createHttpServer(onRequest))
}

async function started(server: Server): Promise<void> {
  door = server
  await new Promise<void>((resolve) => server.listen(path, resolve))
}
