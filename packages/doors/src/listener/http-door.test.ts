import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ByteBudget, TenantBytes } from './byte-budget.ts'
import { type DoorRequest, json, openHttpDoor } from './http-door.ts'

let dir: string
let door: Awaited<ReturnType<typeof openHttpDoor>>
let answer: (request: DoorRequest) => Promise<unknown>

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-http-door-'))
  door = await open(100_000)
})

/** `silentMs`: until a connection without a request is closed, before and after an answer. */
async function open(silentMs: number, bodies?: ByteBudget): Promise<typeof door> {
  return openHttpDoor({
    path: join(dir, 'a.sock'),
    hosts: new Set(['a']),
    ...(bodies && { bodies }),
    routes: { 'POST /ask': { maxBodyBytes: 8, answer: json(async (request) => answer(request)) } },
    bounds: {
      connections: 4,
      requestsPerConnection: 8,
      headMs: 100_000,
      requestMs: 100_000,
      idleMs: silentMs,
      silentMs,
      rate: { burst: 100, perSecond: 100 },
    },
    log: createLog({ process: 'doors', level: 'silent', write: () => {} }),
  })
}

afterEach(async () => {
  await door.close()
  rmSync(dir, { recursive: true })
})

const request = (body: string) => `POST /ask HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`

async function dial(): Promise<Socket> {
  const socket = connect(join(dir, 'a.sock'))
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

it('a connection that waits for its answer is not cut for its silence, as others are', async () => {
  await door.close()
  door = await open(50)
  const held = Promise.withResolvers<void>()
  answer = async () => held.promise.then(() => ({ late: true }))
  const waiting = await dial()
  waiting.write(request('x'))
  for (const _ of [1, 2]) await once((await dial()).resume(), 'close')
  held.resolve()
  expect(String((await once(waiting, 'data'))[0])).toContain('{"late":true}')
  await once(waiting, 'close')
})

it('a request has the whole body, in however many pieces it comes', async () => {
  answer = async ({ body }) => ({ body: body.toString() })
  const socket = await dial()
  for (const piece of [request('12345678').slice(0, -8), '1234', '5678']) {
    socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(String((await once(socket, 'data'))[0])).toContain('{"body":"12345678"}')
  socket.destroy()
})

it('a route hears when the program that asked is gone', async () => {
  const begun = Promise.withResolvers<AbortSignal>()
  answer = async ({ signal }) => {
    begun.resolve(signal)
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))
  }
  const socket = await dial()
  socket.write(request('x'))
  const signal = await begun.promise
  const gone = once(signal, 'abort')
  socket.destroy()
  await gone
})

it('a program that sends a body and does not finish it keeps no other out', async () => {
  answer = async () => ({ ok: true })
  const unfinished = await Promise.all(Array.from({ length: 4 }, async () => dial()))
  for (const socket of unfinished) socket.write(request('12345678').slice(0, -1))
  const socket = await dial()
  socket.write(request('x'))
  expect(String((await once(socket, 'data'))[0])).toContain('{"ok":true}')
  for (const one of [...unfinished, socket]) one.destroy()
})

it('bytes of a body count when they arrive, not when they are declared', async () => {
  await door.close()
  // A tenant that is alone has eight bytes.
  door = await open(
    100_000,
    new ByteBudget({ tenant: 'a', most: 0, small: new TenantBytes(16), large: new TenantBytes(0) }),
  )
  const begun = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  answer = async ({ body }) => {
    if (body.length < 7) return { ok: true }
    begun.resolve()
    return held.promise.then(() => ({ ok: true }))
  }
  const ask = async (body: string) => {
    const socket = await dial()
    socket.write(request(body))
    return socket
  }
  const declared = await Promise.all([dial(), dial()])
  for (const socket of declared) socket.write(request('12345678').slice(0, -8))
  expect(String((await once(await ask('x'), 'data'))[0])).toContain('{"ok":true}')
  const full = await ask('1234567')
  await begun.promise
  expect(String((await once(await ask('xx'), 'data'))[0])).toContain('too_many_requests')
  held.resolve()
  expect(String((await once(full, 'data'))[0])).toContain('{"ok":true}')
  expect(String((await once(await ask('xx'), 'data'))[0])).toContain('{"ok":true}')
})
