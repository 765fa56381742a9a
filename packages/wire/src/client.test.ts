import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AirlockError } from '@airlock/contract'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type WireCall, WireClient } from './client.ts'

const agreed = z.strictObject({ ok: z.literal(true) })
const ASK: WireCall = { method: 'GET', path: '/', answerMs: 20_000, again: 'same' }

let dir: string
let path: string
let server: Server | undefined
let client: WireClient
/** By which connection each request came. */
let heard: Socket[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-wire-'))
  path = join(dir, 'peer.sock')
  heard = []
  client = new WireClient({
    address: { unix: path },
    peer: 'doors',
    unavailable: (cause) => new AirlockError('door_unavailable', undefined, { cause }),
    maxJsonBytes: 1024,
  })
})

afterEach(() => {
  client.close()
  server?.close()
  server?.closeAllConnections()
  server = undefined
  rmSync(dir, { recursive: true })
})

async function serve(answer: RequestListener): Promise<void> {
  const made = createServer((request, response) => {
    heard.push(request.socket)
    answer(request, response)
  })
  server = made
  await new Promise<void>((resolve) => made.listen(path, resolve))
}

const ask = async (call: Partial<WireCall> = {}) => client.json({ ...ASK, ...call }, agreed)
const failure = async (call?: Partial<WireCall>) => ask(call).catch((error: unknown) => error)
const connections = () => new Set(heard).size

/** Answers the first request of a connection, and hangs up at the second. */
const hangUpOnTheSecond: RequestListener = (request, response) => {
  const isFirst = heard.filter((socket) => socket === request.socket).length === 1
  if (isFirst) response.end('{"ok":true}')
  else request.socket.destroy()
}

describe('a connection that was kept', () => {
  it('serves again', async () => {
    await serve((_, response) => response.end('{"ok":true}'))
    for (const _ of [1, 2, 3]) expect(await ask()).toEqual({ ok: true })
    expect([heard.length, connections()]).toEqual([3, 1])
  })

  it('and that died is tried once more, on a fresh one', async () => {
    await serve(hangUpOnTheSecond)
    for (const _ of [1, 2]) expect(await ask()).toEqual({ ok: true })
    expect([heard.length, connections()]).toEqual([3, 2])
  })

  it('is not used for what must not happen twice', async () => {
    await serve(hangUpOnTheSecond)
    for (const _ of [1, 2]) expect(await ask({ again: 'different' })).toEqual({ ok: true })
    expect([heard.length, connections()]).toEqual([2, 2])
  })

  it('and that died with its peer does not tell that nothing happened', async () => {
    await serve((request, response) => {
      if (heard.length === 1) return void response.end('{"ok":true}')
      server?.close()
      request.socket.destroy()
    })
    await ask()
    expect(await failure()).toMatchObject({ code: 'door_unavailable', cause: { name: 'BrokenConnection' } })
  })
})

describe('a peer that does not answer', () => {
  it('because it is not there is unavailable', async () => {
    expect(await failure()).toMatchObject({ code: 'door_unavailable', cause: { code: 'ENOENT' } })
  })

  it('a fresh connection is asked once', async () => {
    await serve((request) => request.socket.destroy())
    expect(await failure()).toMatchObject({ code: 'door_unavailable', cause: { code: 'ECONNRESET' } })
    expect(heard.length).toBe(1)
  })

  it.each([
    ['at all', () => {}],
    ['to the end', (_, response) => response.write('{"ok"')],
  ] satisfies readonly (readonly [string, RequestListener])[])('%s in time is unavailable', async (_, answer) => {
    await serve(answer)
    expect(await failure({ answerMs: 100 })).toMatchObject({ code: 'door_unavailable' })
  })

  it('and breaks off is unavailable', async () => {
    await serve((request, response) => response.write('{"ok"', () => request.socket.destroy()))
    expect(await failure()).toMatchObject({ code: 'door_unavailable' })
  })

  it('to a caller that left is the reason of the caller', async () => {
    const left = new AbortController()
    await serve(() => left.abort(new AirlockError('timeout', 'I left.')))
    expect(await failure({ signal: left.signal })).toMatchObject({ code: 'timeout', message: 'I left.' })
  })
})

describe('an error names the peer', () => {
  it.each([
    ['is not JSON', '<html>', 'The doors answered something that is not JSON.'],
    ['says nothing', '', 'The doors answered something that is not JSON.'],
    ['was not agreed', '{"ok":true,"more":1}', 'The doors answered something that was not agreed.'],
    ['is above the bound', JSON.stringify('x'.repeat(2000)), 'The doors answered too much.'],
  ])('when its answer %s', async (_, text, message) => {
    await serve((_request, response) => response.end(text))
    expect(await failure()).toMatchObject({ code: 'internal', message })
  })

  it('when it refuses and does not say why', async () => {
    await serve((_, response) => response.writeHead(500).end('oops'))
    expect(await failure()).toMatchObject({ code: 'internal', message: 'The doors answered 500 and no reason.' })
  })

  it('but not when the peer says it itself', async () => {
    const error = { code: 'sandbox_not_found', message: 'no such' }
    await serve((_, response) => response.writeHead(404).end(JSON.stringify({ error })))
    expect(await failure()).toMatchObject(error)
  })
})

describe('bytes', () => {
  it('of an answer that breaks off are unavailable', async () => {
    await serve((request, response) => response.write('abc', () => request.socket.destroy()))
    const read = async () => Array.fromAsync(client.bytesOf(await client.stream(ASK)))
    await expect(read()).rejects.toMatchObject({ code: 'door_unavailable' })
  })

  it('that the caller cannot send are the fault of the caller', async () => {
    await serve((request) => request.resume())
    const broken = (async function* () {
      yield Buffer.from('abc')
      throw new AirlockError('disk_full')
    })()
    const call = { method: 'PUT', bytes: broken, again: 'different' } as const
    expect(await failure(call)).toMatchObject({ code: 'disk_full' })
  })
})
