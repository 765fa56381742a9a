import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttp, type IncomingMessage, type Server as HttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AirlockError, type CloseNetworkCall, type OpenNetworkCall } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type DnsServer, startDns } from '../../../../test/support/dns-server.ts'
import type { Door } from '../doors.ts'
import { egressDoor } from './egress-door.ts'
import { clientHello, record } from './testing/hello.ts'

const SANDBOX = 'sbx_0000000000aaaaaaaaaaaaaaaa'
const RETRY = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')

let dir: string
let dns: DnsServer
let door: Door
let upstream: Server
let origin: HttpServer
/** What the upstream got, and its sockets. */
let got: Buffer
let sockets: Socket[]
let requests: IncomingMessage[]
/** What the control plane was asked, what it answers, and how connections ended. */
let asked: OpenNetworkCall[]
let answer: (call: OpenNetworkCall) => Promise<{ connection: string; raw: boolean }>
let ended: CloseNetworkCall[]

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-egress-'))
  dns = await startDns()
  dns.names.set('example.com', ['127.0.0.1'])
  got = Buffer.alloc(0)
  sockets = []
  requests = []
  asked = []
  ended = []
  answer = async () => ({ connection: `con_${asked.length}`, raw: false })
  upstream = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('data', (chunk) => (got = Buffer.concat([got, chunk])))
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
  })
  origin = createHttp((request, response) => {
    requests.push(request)
    request.on('data', (chunk: Buffer) => (got = Buffer.concat([got, chunk])))
    request.on('end', () => response.writeHead(200, { 'content-length': 5, 'keep-alive': 'timeout=9' }).end('hello'))
  })
  await Promise.all([listening(upstream), listening(origin)])
  door = await open()
})

afterEach(async () => {
  await door.close()
  dns.close()
  for (const socket of sockets) socket.destroy()
  upstream.close()
  origin.closeAllConnections()
  origin.close()
  rmSync(dir, { recursive: true })
})

describe('CONNECT', () => {
  it('asks first, resolves the exact name once, and carries both directions', async () => {
    const client = await tunnelTo('EXAMPLE.com.')
    client.write(clientHello())
    await expect.poll(() => got).toEqual(clientHello())
    expect(asked).toMatchObject([
      { sandbox: SANDBOX, host: 'example.com', port: portOf(upstream), traffic: 'tls', method: null },
    ])
    expect(dns.questions.toSorted()).toEqual(['A example.com', 'AAAA example.com'])
    const reply = record(22, Buffer.concat([Buffer.from([2, 0, 0, 60, 3, 3]), Buffer.alloc(58, 5)]))
    sockets[0]?.write(reply)
    expect(await client.reads(reply.length)).toEqual(reply)
    client.write(record(23, Buffer.from('data')))
    await expect.poll(() => got.subarray(clientHello().length)).toEqual(record(23, Buffer.from('data')))
    client.end()
    await client.closed
    await expect
      .poll(() => ended)
      .toMatchObject([
        {
          connection: 'con_1',
          address: '127.0.0.1',
          sent: got.length,
          received: reply.length,
          reason: null,
          message: null,
        },
      ])
  })

  it('passes the half-close of the client on, and what the host still says', async () => {
    answer = async () => ({ connection: 'con_1', raw: true })
    upstream.removeAllListeners('connection')
    upstream.on('connection', (socket: Socket) => {
      sockets.push(socket)
      socket.on('data', () => {})
      socket.on('end', () => socket.end(Buffer.alloc(3_000_000, 7)))
    })
    const client = await tunnelTo('example.com')
    client.end('bye')
    expect((await client.reads(3_000_000)).length).toBe(3_000_000)
    await client.closed
    await expect.poll(() => ended).toMatchObject([{ sent: 3, received: 3_000_000, reason: null }])
  })

  it.each<readonly [string, Buffer, string]>([
    ['another name', clientHello({ names: ['other.example'] }), 'names other.example'],
    ['no name', clientHello({ names: [] }), 'has no server name'],
    ['two names', clientHello({ names: ['example.com', 'other.example'] }), 'more than one'],
    ['a hidden name', clientHello({ extensions: [[0xfe_0d, Buffer.alloc(9)]] }), 'ECH'],
    ['plain HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: example.com\r\n\r\n'), 'does not begin with TLS'],
    ['SSH', Buffer.from('SSH-2.0-client\r\n'), 'does not begin with TLS'],
  ])('puts no byte upstream when the client says %s', async (_, bytes, message) => {
    const client = await tunnelTo('example.com')
    client.write(bytes)
    await client.closed
    expect(client.all().subarray(0, 1)).toEqual(Buffer.from([21]))
    await expect
      .poll(() => ended)
      .toMatchObject([{ sent: 0, reason: 'invalid_request', message: expect.stringContaining(message) }])
    expect(got.length).toBe(0)
  })

  it('checks the second ClientHello that a server asks for', async () => {
    for (const [name, passes] of [
      ['example.com', true],
      ['other.example', false],
    ] as const) {
      got = Buffer.alloc(0)
      ended = []
      const client = await tunnelTo('example.com')
      client.write(clientHello())
      await expect.poll(() => got.length).toBe(clientHello().length)
      // It comes before the server asked for it, too.
      const second = Buffer.concat([record(20, Buffer.from([1])), clientHello({ names: [name] })])
      client.write(second)
      const retry = record(22, Buffer.concat([Buffer.from([2, 0, 0, 34, 3, 3]), RETRY]))
      sockets.at(-1)?.write(retry)
      if (passes) await expect.poll(() => got.length).toBe(clientHello().length + second.length)
      else
        await expect
          .poll(() => ended.at(-1))
          .toMatchObject({ sent: clientHello().length, message: expect.stringContaining('names other') })
      if (!passes) expect(got.length).toBe(clientHello().length)
      client.socket.destroy()
    }
  })

  it('carries other bytes where the rule says so', async () => {
    answer = async () => ({ connection: 'con_1', raw: true })
    const client = await tunnelTo('example.com')
    client.write('SSH-2.0-client\r\n')
    await expect.poll(() => got.toString()).toBe('SSH-2.0-client\r\n')
    client.socket.destroy()
    await expect.poll(() => ended).toMatchObject([{ sent: 16, reason: null }])
  })

  it('says why it was refused, on the status line and as JSON, and resolves nothing', async () => {
    answer = async () =>
      Promise.reject(new AirlockError('policy_denied', 'No rule allows it.', { hint: 'Ask\r\nx: y' }))
    const { head, body } = await talk(connectLine('example.com:443'))
    expect(head.split('\r\n')[0]).toBe('HTTP/1.1 403 No rule allows it. Ask??x: y')
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'policy_denied', message: 'No rule allows it.' } })
    answer = async () => Promise.reject(new AirlockError('approval_required', 'Wait.', { approval: 'apr_1' }))
    const waiting = await talk(connectLine('example.com:443'))
    expect(waiting.head).toContain('403 Wait.')
    expect(JSON.parse(waiting.body)).toMatchObject({ error: { code: 'approval_required', approval: 'apr_1' } })
    expect([dns.questions, ended]).toEqual([[], []])
  })

  it.each([
    ['a private address', ['10.0.0.1']],
    ['a private address beside a public one', ['8.8.8.8', '10.0.0.1']],
    ['loopback by IPv6', ['8.8.8.8', '::1']],
    ['another loopback than the one that is listed', ['127.0.0.2']],
    ['metadata', ['169.254.169.254']],
    ['mapped loopback', ['::ffff:7f00:1']],
  ])('connects to nothing when the name leads to %s', async (_, addresses) => {
    dns.names.set('example.com', addresses)
    const { head } = await talk(connectLine(`example.com:${portOf(upstream)}`))
    expect(head).toMatch(/^HTTP\/1.1 403 example.com:\d+ leads to .* is not a public address/)
    expect(sockets).toEqual([])
    await expect.poll(() => ended).toMatchObject([{ reason: 'address_refused', address: null, sent: 0 }])
  })

  it('says so when a name does not exist, or nobody listens', async () => {
    expect((await talk(connectLine('absent.example:443'))).head).toMatch(/^HTTP\/1.1 502 absent.example has no address/)
    const port = portOf(upstream)
    await new Promise((resolve) => upstream.close(resolve))
    expect((await talk(connectLine(`example.com:${port}`))).head).toMatch(/^HTTP\/1.1 502 .* could not be reached/)
    await listening(upstream)
  })

  it.each([
    ['no port', 'CONNECT example.com HTTP/1.1\r\nHost: example.com\r\n\r\n'],
    ['another Host', 'CONNECT example.com:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n'],
    ['two Hosts', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nHost: example.com:443\r\n\r\n'],
    ['userinfo', 'CONNECT a@example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
    ['a URL', 'CONNECT https://example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
    ['a path', 'CONNECT example.com:443/x HTTP/1.1\r\nHost: example.com\r\n\r\n'],
    ['a body', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nContent-Length: 3\r\n\r\nabc'],
    ['a NUL', 'CONNECT example.com\0.other:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
    ['letters that are not ASCII', 'CONNECT ex\u00e4mple.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
    ['a wildcard', 'CONNECT *.example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
    ['SOCKS 5', '\u0005\u0001\u0000'],
    ['SOCKS 4', '\u0004\u0001\u0001\u00bb\u007f\u0000\u0000\u0001\u0000'],
    ['TLS', clientHello().toString('latin1')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('with %s is refused without a question', async (_, bytes) => {
    expect((await talk(bytes)).head).toMatch(/^HTTP\/1.1 400 /)
    expect([asked, dns.questions]).toEqual([[], []])
  })
})

describe('plain HTTP', () => {
  const target = () => `example.com:${portOf(origin)}`
  const get = (more = 'Connection: close\r\n', line = `GET http://${target()}/a?b=c HTTP/1.1`) =>
    `${line}\r\nHost: ${target()}\r\n${more}\r\n`

  it('is written anew, and one decision is one connection', async () => {
    const more =
      'Connection: x-hop, close\r\nX-Hop: 1\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nX-Own: 1\r\n'
    const { head, body } = await talk(get(more))
    expect([head.split('\r\n')[0], body]).toEqual(['HTTP/1.1 200 OK', 'hello'])
    expect(head.toLowerCase()).not.toContain('keep-alive: timeout=9')
    expect(requests[0]?.url).toBe('/a?b=c')
    expect(requests[0]?.headers).toEqual({ host: target(), 'x-own': '1', connection: 'close' })
    expect(asked).toMatchObject([{ host: 'example.com', port: portOf(origin), traffic: 'http', method: 'GET' }])
    const { bytesRead: sent, bytesWritten: received } = requests[0]?.socket ?? {}
    await expect.poll(() => ended).toMatchObject([{ sent, received, reason: null }])
  })

  it('decides on each request of a connection alone', async () => {
    answer = async ({ host }) =>
      host === 'example.com' ? { connection: 'con_1', raw: false } : Promise.reject(new AirlockError('policy_denied'))
    const other = 'GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n'
    const all = await talkAll(`${get('')}${other}`)
    expect(all.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 403'])
    expect([requests.length, dns.questions.length]).toEqual([1, 2])
  })

  it('carries a body of one length, or chunked anew without trailers', async () => {
    const post = `POST http://${target()}/ HTTP/1.1`
    await talk(`${get('Connection: close\r\nContent-Length: 3\r\n', post)}abc`)
    expect([got.toString(), requests[0]?.headers['content-length']]).toEqual(['abc', '3'])
    await talk(
      `${get('Connection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n', post)}3;x=y\r\ndef\r\n0\r\nX-T: 1\r\n\r\n`,
    )
    expect([got.toString(), requests[1]?.headers['transfer-encoding']]).toEqual(['abcdef', 'chunked'])
    expect(requests[1]?.trailers).toEqual({})
  })

  it('answers 100-continue itself, once the request is allowed', async () => {
    const post = `POST http://${target()}/ HTTP/1.1`
    const { head } = await talk(`${get('Connection: close\r\nContent-Length: 3\r\nExpect: 100-continue\r\n', post)}abc`)
    expect(head).toBe('HTTP/1.1 100 Continue')
    expect([got.toString(), requests[0]?.headers.expect]).toEqual(['abc', undefined])
  })

  it.each<readonly [string, (to: string) => string]>([
    ['only a path', (to) => `GET / HTTP/1.1\r\nHost: ${to}\r\n\r\n`],
    ['https', (to) => `GET https://${to}/ HTTP/1.1\r\nHost: ${to}\r\n\r\n`],
    ['ftp', (to) => `GET ftp://${to}/ HTTP/1.1\r\nHost: ${to}\r\n\r\n`],
    ['userinfo', (to) => `GET http://x@${to}/ HTTP/1.1\r\nHost: ${to}\r\n\r\n`],
    ['another Host', (to) => `GET http://${to}/ HTTP/1.1\r\nHost: other.example\r\n\r\n`],
    ['no Host', (to) => `GET http://${to}/ HTTP/1.1\r\n\r\n`],
    ['two Hosts', (to) => `GET http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nHost: ${to}\r\n\r\n`],
    ['HTTP/1.0', (to) => `GET http://${to}/ HTTP/1.0\r\nHost: ${to}\r\n\r\n`],
    [
      'an upgrade',
      (to) => `GET http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
    [
      'a length and chunks',
      (to) =>
        `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'two lengths',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`,
    ],
    [
      'the same length twice',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc`,
    ],
    ['a signed length', (to) => `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nContent-Length: +3\r\n\r\nabc`],
    [
      'chunked twice',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'gzip and chunked',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'an encoding that is not one',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    ],
    ['a folded header', (to) => `GET http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nX: a\r\n b\r\n\r\n`],
    ['a space before a colon', (to) => `GET http://${to}/ HTTP/1.1\r\nHost : ${to}\r\n\r\n`],
    ['a bare line feed', (to) => `GET http://${to}/ HTTP/1.1\nHost: ${to}\n\n`],
    ['a NUL in a header', (to) => `GET http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nX: a\0b\r\n\r\n`],
    ['a fragment', (to) => `GET http://${to}/#a HTTP/1.1\r\nHost: ${to}\r\n\r\n`],
  ])('with %s is refused without a question', async (_, bytes) => {
    const all = await talkAll(`${bytes(target())}${get()}`)
    expect(all.match(/^HTTP\/1.1 400/g)).toEqual(['HTTP/1.1 400'])
    expect([asked, dns.questions, requests]).toEqual([[], [], []])
  })

  it('is refused in the shape of CONNECT, and what follows is not read', async () => {
    answer = async () => Promise.reject(new AirlockError('policy_denied', 'No rule allows it.'))
    const all = await talkAll(
      `POST http://${target()}/ HTTP/1.1\r\nHost: ${target()}\r\nContent-Length: 200\r\n\r\n${get()}`,
    )
    expect(all).toMatch(/^HTTP\/1.1 403 No rule allows it\./)
    expect(asked.length).toBe(1)
  })
})

describe('a connection', () => {
  const RAW = async () => ({ connection: `con_${asked.length}`, raw: true })

  it('is cut at both ends when it is not allowed any more, and others are not', async () => {
    answer = RAW
    const [one, two] = [await tunnelTo('example.com'), await tunnelTo('example.com')]
    await expect.poll(() => sockets.length).toBe(2)
    const closed = Promise.all([one.closed, new Promise((resolve) => sockets[0]?.once('close', resolve))])
    door.cut?.(['con_1'])
    await closed
    await expect.poll(() => ended).toMatchObject([{ connection: 'con_1', reason: 'policy' }])
    expect([two.socket.closed, sockets[1]?.closed]).toEqual([false, false])
  })

  it.each(['revoked', 'shut', 'paused', 'lost'] as const)('is cut when its sandbox is %s', async (what) => {
    answer = RAW
    const client = await tunnelTo('example.com')
    await expect.poll(() => sockets.length).toBe(1)
    const closed = Promise.all([client.closed, new Promise((resolve) => sockets[0]?.once('close', resolve))])
    door.changed('policy')
    expect(client.socket.closed).toBe(false)
    door.changed(what)
    await closed
    await expect.poll(() => ended).toMatchObject([{ reason: what }])
  })

  it('is cut when the door is closed, which resolves', async () => {
    answer = RAW
    const client = await tunnelTo('example.com')
    const closed = client.closed
    await door.close()
    await closed
  })

  it('is not made when its client left before the answer', async () => {
    const decided = Promise.withResolvers<{ connection: string; raw: boolean }>()
    answer = async () => decided.promise
    const client = connect(join(dir, 'egress.sock'))
    client.write(connectLine(`example.com:${portOf(upstream)}`))
    await expect.poll(() => asked.length).toBe(1)
    client.destroy()
    await once(client, 'close')
    // The door notices in its own time.
    await new Promise((resolve) => setTimeout(resolve, 100))
    decided.resolve({ connection: 'con_1', raw: true })
    await expect.poll(() => ended).toMatchObject([{ reason: 'client gone', address: null }])
    expect([dns.questions, sockets]).toEqual([[], []])
  })

  it('may be one of so many, carry so much, and be idle so long', async () => {
    await door.close()
    door = await open({ connections: 1, bytes: 1000 })
    answer = RAW
    const client = await tunnelTo('example.com')
    expect((await talk(connectLine(`example.com:${portOf(upstream)}`))).head).toContain('429')
    client.write(Buffer.alloc(1001))
    await client.closed
    await expect.poll(() => ended).toMatchObject([{ reason: 'bytes' }])
    await door.close()
    door = await open({ idleMs: 50 })
    await (
      await tunnelTo('example.com')
    ).closed
    await expect.poll(() => ended.at(-1)).toMatchObject({ reason: 'idle' })
  })
})

async function open(more: object = {}): Promise<Door> {
  const log = createLog({ process: 'doors', level: 'silent', write: () => {} })
  const listed = [upstream, origin].map((server) => ({ address: '127.0.0.1', port: portOf(server) }))
  const bounds = { bitsPerSecond: 1e9, connections: 16, bytes: 1e9, idleMs: 60_000, totalMs: 60_000 }
  const settings = { resolvers: [dns.address], listed, ...bounds, ...more }
  const controlPlane = {
    openConnection: async (call: OpenNetworkCall) => {
      asked.push(call)
      return answer(call)
    },
    closeConnection: async (end: CloseNetworkCall) => void ended.push(end),
  }
  return egressDoor({ controlPlane, settings, log })({
    sandbox: SANDBOX,
    dir,
    config: { door: 'egress', version: '1' },
  })
}

async function listening(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo | null)?.port ?? 0
}

function connectLine(to: string): string {
  return `CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n\r\n`
}

/** Says something and reads until the door closes the connection. */
async function talkAll(bytes: string): Promise<string> {
  const socket = connect({ path: join(dir, 'egress.sock'), allowHalfOpen: true })
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', () => {})
  socket.on('end', () => socket.end())
  socket.write(Buffer.from(bytes, 'latin1'))
  await once(socket, 'close')
  return text
}

async function talk(bytes: string): Promise<{ readonly head: string; readonly body: string }> {
  const [head = '', body = ''] = (await talkAll(bytes)).split('\r\n\r\n')
  return { head, body }
}

/** A tunnel that was promised. */
async function tunnelTo(host: string) {
  const socket = connect({ path: join(dir, 'egress.sock'), allowHalfOpen: true })
  const closed = once(socket, 'close')
  let bytes = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('end', () => socket.end())
  socket.on('data', (chunk: Buffer) => (bytes = Buffer.concat([bytes, chunk])))
  socket.write(connectLine(`${host}:${portOf(upstream)}`))
  await expect.poll(() => bytes.toString('latin1')).toMatch(/^HTTP\/1.1 200 [^\r]*\r\n\r\n/)
  bytes = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)
  return {
    socket,
    closed,
    all: () => bytes,
    write: (data: Buffer | string) => socket.write(data),
    end: (data?: string) => void (data === undefined ? socket.end() : socket.end(data)),
    reads: async (count: number): Promise<Buffer> => {
      await expect.poll(() => bytes.length).toBe(count)
      return bytes
    },
  }
}
