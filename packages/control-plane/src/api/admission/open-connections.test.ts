import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { deadline, waitFor } from '@airlock/std'
import { afterEach, describe, expect, it } from 'vitest'
import { createListener, refuseMalformed } from '../listener.ts'
import { type ConnectionBounds, connectionBounds, OpenConnections } from './open-connections.ts'

const AMPLE: ConnectionBounds = { unproven: 100, unprovenPerAddress: 100, proven: 400, unprovenMs: 60_000 }

/** A key that both sides know stands for a certificate. */
const TLS = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const
const PSK = Buffer.alloc(16, 1)

/** The answer within a share. */
const KEPT = 'kept'

/** How long a condition may take to hold. */
const SOON = () => ({ signal: deadline(100_000), everyMs: 10 })

let server: Server | undefined
const sockets: Socket[] = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server?.closeAllConnections()
  await new Promise((resolve) => server?.close(resolve))
})

describe('strangers', () => {
  it('make room for one another, the oldest first', async () => {
    const { dial } = await listen({ unproven: 3 })
    const [first, second, third] = [await dial(), await dial(), await dial()]
    const [fourth, fifth] = [await dial(), await dial()]
    await isClosed(first)
    await isClosed(second)
    expect([third, fourth, fifth].map(({ closed }) => closed)).toEqual([false, false, false])
  })

  it('take the place of nobody who has shown a key', async () => {
    const { dial, ask } = await listen({ unproven: 2 })
    const caller = await dial()
    await ask(caller, 'alice')
    for (const _ of [1, 2, 3, 4]) await dial()
    expect(await ask(caller, 'alice')).toBe(KEPT)
  })

  it('of one address make room for one another, and not for those of other addresses', async () => {
    const { dial } = await listen({ unproven: 4, unprovenPerAddress: 2 })
    const other = await dial({ localAddress: '127.0.0.2' })
    const [first] = [await dial(), await dial(), await dial()]
    await isClosed(first)
    expect(other.closed).toBe(false)
  })

  it('are known by what a trusted proxy says of them', async () => {
    const { dial, ask } = await listen({ unprovenPerAddress: 2 }, 'proxied')
    const [first, second, third, fourth] = [await dial(), await dial(), await dial(), await dial()]
    await ask(first, 'nobody', '192.0.2.1')
    await ask(second, 'nobody', '192.0.2.2')
    await ask(third, 'nobody', '192.0.2.1')
    await ask(fourth, 'nobody', '192.0.2.1')
    await isClosed(first)
    expect([second, third, fourth].map(({ closed }) => closed)).toEqual([false, false, false])
  })

  it('of one network of IPv6 are one', async () => {
    const { dial, ask } = await listen({ unprovenPerAddress: 1 }, 'proxied')
    const [first, second, third] = [await dial(), await dial(), await dial()]
    await ask(first, 'nobody', '2001:db8::1')
    await ask(second, 'nobody', '2001:db8:0:1::1')
    await ask(third, 'nobody', '2001:db8:0:0:ffff::2')
    await isClosed(first)
    expect(second.closed).toBe(false)
  })

  it('are gone after a while, whatever they do', async () => {
    const { dial } = await listen({ unprovenMs: 50 })
    await isClosed(await dial())
  })
})

describe('a caller', () => {
  it('has a share of connections: the next one is told so, and stays a stranger', async () => {
    // One alone has a quarter.
    const { dial, ask } = await listen({ proven: 8, unproven: 1 })
    const [first, second, third] = [await dial(), await dial(), await dial()]
    await isClosed(first)
    expect(await ask(third, 'alice')).toBe(KEPT)
    expect(await ask(await dial(), 'alice')).toBe(KEPT)
    const beyond = await dial()
    expect(await ask(beyond, 'alice')).toBe('You have as many connections open as your share allows.')
    await dial()
    await isClosed(beyond)
    third.destroy()
    await waitFor(async () => ((await ask(await dial(), 'alice')) === KEPT ? true : undefined), SOON())
    expect(second.closed).toBe(true)
  })

  it('that has few gets an idle connection of whoever has most, and none with a request', async () => {
    const { dial, ask, hang } = await listen({ proven: 8 })
    const [busy, idle] = [await dial(), await dial()]
    for (const socket of [busy, idle]) expect(await ask(socket, 'alice@acme')).toBe(KEPT)
    await hang(busy, 'alice@acme')
    expect(await ask(await dial(), 'bob@acme')).toBe(KEPT)
    expect(idle.closed).toBe(false)
    expect(await ask(await dial(), 'carol@acme')).toBe(KEPT)
    await isClosed(idle)
    expect(await ask(await dial(), 'dave@acme')).not.toBe(KEPT)
    expect(busy.closed).toBe(false)
  })

  it('that sends requests ahead has them served one after the other, and is cut when they are many', async () => {
    const { dial, say, count } = await listen({})
    say(await dial(), 'alice', 3)
    await waitFor(() => (count.served === 3 ? true : undefined), SOON())
    expect(count.atOnce).toBe(1)
    const many = await dial()
    say(many, 'alice', 40)
    await isClosed(many)
  })
})

describe('over TLS', () => {
  it('a port that is used again, before the end of the connection before is heard, is counted', async () => {
    const { dial, dialTls, ask } = await listen({ unproven: 2 }, 'tls')
    const { socket, raw } = await dialTls()
    expect(await ask(socket, 'alice')).toBe(KEPT)
    const { localPort } = raw
    raw.resetAndDestroy()
    const again = await dial({ localPort })
    expect(await ask(again, 'alice')).toBe(KEPT)
    const strangers = [await dial(), await dial(), await dial()]
    await Promise.race(strangers.map(isClosed))
    expect(await ask(again, 'alice')).toBe(KEPT)
  })
})

it('has fewer where a process may open few files', () => {
  expect(connectionBounds(1024)).toMatchObject({ unproven: 128, proven: 512 })
  expect(connectionBounds(1_000_000)).toMatchObject({ unproven: 2048, proven: 8192 })
})

it('a listener gives each head 5 s, looks twice a second, and bounds no body', () => {
  // Waiting for it would show the eviction of strangers as well.
  const deadlines = { headersTimeout: 5_000, requestTimeout: 0, connectionsCheckingInterval: 500 }
  expect(createListener(() => {}, null)).toMatchObject(deadlines)
})

it('lets go of a socket that was told its request is none, though the other side keeps its half open', async () => {
  server = createListener(() => {}, null).on('clientError', refuseMalformed)
  const port = await start(server)
  const socket = hold(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
  socket.resume().write('nonsense\r\n\r\n')
  await once(socket, 'end')
  const listening = server
  await waitFor(async () => ((await countOf(listening)) === 0 ? true : undefined), SOON())
})

/** A server that says who is kept; a request of `hang` is never answered. */
async function listen(changes: Partial<ConnectionBounds>, way: Way = 'direct') {
  const bounds = { ...AMPLE, ...changes }
  const connections = new OpenConnections({ bounds, isProxied: way === 'proxied', onAccept: () => {} })
  const count = { served: 0, underWay: 0, atOnce: 0 }
  const listener = connections.inTurn(({ socket, headers, url }, response) => {
    if (way === 'proxied') connections.locate(socket, String(headers['x-address']))
    const [actor = '', tenant = 'default'] = String(headers['x-key']).split('@')
    const refusal = actor === 'nobody' ? undefined : connections.prove(socket, { tenant, actor })
    count.served += 1
    count.atOnce = Math.max(count.atOnce, (count.underWay += 1))
    if (url === '/hang') return response.flushHeaders()
    setImmediate(() => {
      count.underWay -= 1
      response.end(refusal?.message ?? KEPT)
    })
  })
  const listening = (server = connections.watch(makeServer(listener, way)))
  const port = await start(listening)
  const say = (socket: Socket, key: string, times = 1): void => {
    socket.write(`GET / HTTP/1.1\r\nhost: x\r\nx-key: ${key}\r\nx-address: \r\n\r\n`.repeat(times))
  }
  const answer = async (socket: Socket): Promise<string> => {
    const [text] = (await once(socket, 'data')) as [Buffer]
    return text.toString().split('\r\n\r\n')[1] ?? ''
  }
  return {
    count,
    say,
    ask: async (socket: Socket, key: string, address = ''): Promise<string> => {
      socket.write(`GET / HTTP/1.1\r\nhost: x\r\nx-key: ${key}\r\nx-address: ${address}\r\n\r\n`)
      return answer(socket)
    },
    hang: async (socket: Socket, key: string): Promise<void> => {
      socket.write(`GET /hang HTTP/1.1\r\nhost: x\r\nx-key: ${key}\r\n\r\n`)
      await answer(socket)
    },
    dial: async (options: Partial<TcpNetConnectOpts> = {}) => (await open({ ...options, port }, way, listening)).socket,
    dialTls: async () => open({ port }, way, listening),
  }
}

type Way = 'direct' | 'proxied' | 'tls'

/** Resolves when the server has it too, so that the order is known. */
async function open(to: TcpNetConnectOpts, way: Way, on: Server): Promise<{ socket: Socket; raw: Socket }> {
  const accepted = once(on, way === 'tls' ? 'secureConnection' : 'connection')
  const raw = hold(connect({ host: '127.0.0.1', ...to }))
  const socket = way === 'tls' ? hold(await secure(raw)) : raw
  await accepted
  return { socket, raw }
}

function makeServer(listener: RequestListener, way: Way): Server {
  if (way !== 'tls') return createServer({ keepAliveTimeout: 100_000 }, listener)
  return createTlsServer({ ...TLS, pskCallback: () => PSK }, listener)
}

async function secure(socket: Socket): Promise<Socket> {
  await once(socket, 'connect')
  const psk = { psk: PSK, identity: 'x' }
  return connectTls({ ...TLS, socket, pskCallback: () => psk, checkServerIdentity: () => undefined })
}

async function start(on: Server): Promise<number> {
  await once(on.listen(0, '127.0.0.1'), 'listening')
  return (on.address() as AddressInfo).port
}

/** It is closed when the test ends. Whoever has to make room is told so by a reset. */
function hold(socket: Socket): Socket {
  sockets.push(socket)
  return socket.on('error', () => {})
}

async function isClosed(socket: Socket): Promise<void> {
  if (!socket.resume().closed) await once(socket, 'close')
}

async function countOf(of: Server): Promise<number> {
  return new Promise((resolve, reject) => of.getConnections((error, count) => (error ? reject(error) : resolve(count))))
}
