import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { AirlockError } from '@airlock/contract'
import { deadline, waitFor } from '@airlock/std'
import { afterEach, describe, expect, it } from 'vitest'
import { createListener, refuseMalformed } from './listener.ts'
import { type ConnectionBounds, connectionBounds, OpenConnections } from './open-connections.ts'

const AMPLE: ConnectionBounds = {
  unproven: 100,
  unprovenPerAddress: 100,
  proven: 100,
  provenPerCaller: 100,
  unprovenMs: 60_000,
}

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
    expect(await ask(caller, 'alice')).toContain('200 OK')
  })

  it('of one address make room for one another, and not for those of other addresses', async () => {
    const { dial } = await listen({ unproven: 4, unprovenPerAddress: 2 })
    const other = await dial('127.0.0.2')
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
  it('has a share of connections, and no more', async () => {
    const { dial, ask, connections } = await listen({ provenPerCaller: 1 })
    await ask(await dial(), 'alice')
    expect(connections.refuse('alice')).toBeUndefined()
    const second = await dial()
    await ask(second, 'alice')
    expect(connections.refuse('alice')).toEqual(expect.any(AirlockError))
    expect(connections.refuse('bob')).toBeUndefined()
    second.destroy()
    await waitFor(() => (connections.refuse('alice') === undefined ? true : undefined), SOON())
  })

  it('shares with all others', async () => {
    const { dial, ask, connections } = await listen({ proven: 1 })
    await ask(await dial(), 'alice')
    await ask(await dial(), 'bob')
    expect(connections.refuse('carol')).toMatchObject({ code: 'too_many_requests' })
  })
})

it('has fewer where a process may open few files', () => {
  expect(connectionBounds(1024)).toMatchObject({ unproven: 128, proven: 512 })
  expect(connectionBounds(1_000_000)).toMatchObject({ unproven: 2048, proven: 8192 })
})

it('lets go of a socket that was told its request is none, though the other side keeps its half open', async () => {
  server = createListener(() => {}, null).on('clientError', refuseMalformed)
  const socket = await open(await start(server), { allowHalfOpen: true })
  socket.resume().write('nonsense\r\n\r\n')
  await once(socket, 'end')
  await waitFor(async () => ((await countOf(server)) === 0 ? true : undefined), SOON())
})

async function listen(changes: Partial<ConnectionBounds>, way: 'direct' | 'proxied' = 'direct') {
  const connections = new OpenConnections({ ...AMPLE, ...changes }, way === 'proxied')
  const answer = ({ socket, headers }: IncomingMessage): void => {
    if (way === 'proxied') connections.locate(socket, String(headers['x-address']))
    if (headers['x-key'] !== 'nobody') connections.prove(socket, String(headers['x-key']))
  }
  server = connections.watch(
    createServer((request, response) => {
      answer(request)
      response.end()
    }),
  )
  const port = await start(server)
  const ask = async (socket: Socket, key: string, address = ''): Promise<string> => {
    socket.write(`GET / HTTP/1.1\r\nhost: x\r\nx-key: ${key}\r\nx-address: ${address}\r\n\r\n`)
    const [text] = (await once(socket, 'data')) as [Buffer]
    return text.toString()
  }
  return { connections, ask, dial: async (localAddress = '127.0.0.1') => open(port, { localAddress }) }
}

async function start(on: Server): Promise<number> {
  await once(on.listen(0, '127.0.0.1'), 'listening')
  return (on.address() as AddressInfo).port
}

/** Resolves when the server has it too, so that the order is known. */
async function open(port: number, options: Partial<TcpNetConnectOpts>): Promise<Socket> {
  const accepted = server && once(server, 'connection')
  const socket = connect({ port, host: '127.0.0.1', ...options })
  sockets.push(socket)
  // Whoever has to make room is told so by a reset.
  socket.on('error', () => {})
  await accepted
  return socket
}

async function isClosed(socket: Socket): Promise<void> {
  if (!socket.resume().closed) await once(socket, 'close')
}

async function countOf(of: Server | undefined): Promise<number> {
  return new Promise((resolve, reject) =>
    of?.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
}
