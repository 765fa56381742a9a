import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { clientHello, record } from './testing/hello.ts'
import { Stage } from './testing/stage.ts'

const RETRY_RANDOM = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')
const RETRY = serverHello(RETRY_RANDOM)
const CHANGE_CIPHER = record(20, Buffer.from([1]))

let stage: Stage

beforeEach(async () => {
  stage = await Stage.start()
})
afterEach(async () => stage.close())

describe('TLS', () => {
  it('a second ClientHello in the same write as the first is not sent before it was read', async () => {
    stage.serve = (socket) => socket.once('data', () => socket.write(RETRY))
    const { socket, closed } = await stage.tunnel()
    const evil = clientHello({ names: ['other.example'] })
    socket.write(Buffer.concat([clientHello(), CHANGE_CIPHER, evil]))
    await closed
    expect(stage.got).toEqual(clientHello())
    await expect.poll(() => stage.ended).toMatchObject([{ message: expect.stringContaining('names other.example') }])
  })

  it('a second ClientHello in the same write passes when it names the same host', async () => {
    stage.serve = (socket) => socket.once('data', () => socket.write(RETRY))
    const { socket } = await stage.tunnel()
    const all = Buffer.concat([clientHello(), CHANGE_CIPHER, clientHello()])
    socket.write(all)
    await expect.poll(() => stage.got).toEqual(all)
    socket.destroy()
  })

  it.each([
    ['greets first', '220 mail.example ESMTP\r\n'],
    ['answers a line it cannot read', '500 what?\r\n'.repeat(9)],
  ])('plaintext is not sent to a server that speaks no TLS and %s', async (_, line) => {
    stage.serve = (socket) => socket.write(line)
    const { socket, closed } = await stage.tunnel()
    socket.write(clientHello())
    await expect.poll(() => stage.got.length).toBe(clientHello().length)
    socket.write('EHLO inside\r\nMAIL FROM:<a@b>\r\n')
    await closed
    expect(stage.got).toEqual(clientHello())
    await expect.poll(() => stage.ended).toMatchObject([{ reason: 'invalid_request' }])
  })

  it.each([
    ['behind a warning', [record(21, Buffer.from([1, 112])), RETRY]],
    ['cut into small records', [...RETRY.subarray(5)].map((byte) => record(22, Buffer.from([byte])))],
    ['cut anywhere', [...RETRY].map((byte) => Buffer.from([byte]))],
  ])('a second ClientHello is checked when the server asks for it %s', async (_, pieces) => {
    stage.serve = (socket) => socket.once('data', () => pieces.forEach((piece) => socket.write(piece)))
    const { socket, closed, read } = await stage.tunnel()
    socket.write(clientHello())
    await expect.poll(() => read()).toEqual(Buffer.concat(pieces))
    socket.write(clientHello({ names: ['other.example'] }))
    await closed
    expect(stage.got).toEqual(clientHello())
  })

  it.each([0xfe_08, 0xfe_0a, 0xff_02])('an encrypted name of draft %i is refused', async (type) => {
    const { socket, closed } = await stage.tunnel()
    socket.write(clientHello({ extensions: [[type, Buffer.alloc(9)]] }))
    await closed
    expect(stage.got.length).toBe(0)
  })
})

describe('plain HTTP', () => {
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: other.example\r\n\r\n'

  beforeEach(() => {
    stage.serve = (socket) =>
      socket.once('data', () => setTimeout(() => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), 100))
  })

  it.each(['GET', 'HEAD', 'DELETE', 'OPTIONS'])('the chunked body of %s arrives as a body', async (method) => {
    const chunk = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`
    const head = `${method} http://${stage.target}/ HTTP/1.1\r\nHost: ${stage.target}\r\n`
    await stage.talk(`${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`)
    expect(stage.got.toString()).toMatch(/transfer-encoding: chunked/i)
    expect(stage.got.toString().split('\r\n\r\n')[1]).toMatch(/^[0-9a-f]+\r\nGET \/smuggled/)
  })

  it('a length behind thousands of headers is not lost: the request is refused', async () => {
    const head = `GET http://${stage.target}/ HTTP/1.1\r\nHost: ${stage.target}\r\nConnection: close\r\n`
    const body = `Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`
    expect(await stage.talk(`${head}${'a:\r\n'.repeat(2200)}${body}`)).toMatch(/^HTTP\/1.1 400 /)
    expect([stage.asked, stage.got.length]).toEqual([[], 0])
    // With fewer, the length arrives.
    await stage.talk(`${head}${'a:\r\n'.repeat(900)}${body}`)
    expect(stage.got.toString()).toMatch(/Content-Length: 47\r\n[^]*\r\n\r\nGET \/smuggled/)
  })

  it('bytes of headers are counted in both directions', async () => {
    const head = `GET http://${stage.target}/${'x'.repeat(3000)} HTTP/1.1\r\nHost: ${stage.target}\r\nConnection: close\r\n\r\n`
    await stage.talk(head)
    await expect.poll(() => stage.ended).toMatchObject([{ sent: stage.got.length, received: 40 }])
  })

  it('a name is asked again by each connection', async () => {
    const head = `GET http://${stage.target}/ HTTP/1.1\r\nHost: ${stage.target}\r\nConnection: close\r\n\r\n`
    await stage.talk(head)
    await stage.talk(head)
    expect(stage.dns.questions.length).toBe(4)
  })

  it('CONNECT behind requests that are not answered is refused, and they end', async () => {
    const head = `GET http://${stage.target}/ HTTP/1.1\r\nHost: ${stage.target}\r\n\r\n`
    const line = `CONNECT ${stage.target} HTTP/1.1\r\nHost: ${stage.target}\r\n\r\n`
    expect(await stage.talk(`${head}${head}${line}plain`)).toMatch(/^HTTP\/1.1 400 CONNECT must not follow/)
    await expect.poll(() => stage.ended.map(({ connection }) => connection).toSorted()).toEqual(['con_1', 'con_2'])
    expect(stage.got.toString()).not.toContain('plain')
  })

  it.each<readonly [string, string | Buffer]>([
    ['nothing', ''],
    ['a half head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['no HTTP', 'SSH-2.0-x\r\n'],
    ['an unasked upgrade', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nsecret'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['status 000', 'HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n'],
    ['a head that is too long', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(40_000)}\r\n\r\n`],
    ['a NUL in a header', 'HTTP/1.1 200 OK\r\nx: \0\r\n\r\n'],
    ['a chunk that is none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    ['interim answers without an end', 'HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n'.repeat(2000)],
  ])('the door outlives a host that answers %s', async (_, bytes) => {
    stage.serve = (socket) => socket.once('data', () => socket.end(bytes))
    const head = `GET http://${stage.target}/ HTTP/1.1\r\nHost: ${stage.target}\r\nConnection: close\r\n\r\n`
    expect(await stage.talk(head)).not.toContain('secret')
    await expect.poll(() => stage.ended.length).toBe(1)
    stage.serve = (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
    expect(await stage.talk(head)).toMatch(/^HTTP\/1.1 200 OK/)
  })
})

describe('a sandbox that opens all it may', () => {
  it('holds as many tunnels as are allowed, and none more, however slowly it writes', async () => {
    stage.isRaw = true
    const tunnels = await Promise.all(Array.from({ length: 16 }, async () => stage.tunnel()))
    for (const { socket } of tunnels) socket.write('x')
    const line = `CONNECT ${stage.target} HTTP/1.1\r\nHost: ${stage.target}\r\n\r\n`
    expect(await stage.talk(line)).toMatch(/^HTTP\/1.1 429 /)
    // Half-open: the host still writes.
    for (const { socket } of tunnels) socket.end()
    await Promise.all(tunnels.map(async ({ closed }) => closed))
    await expect.poll(() => stage.ended.length).toBe(16)
    const again = await stage.tunnel()
    again.socket.destroy()
  })
})

function serverHello(random: Buffer): Buffer {
  return record(22, Buffer.concat([Buffer.from([2, 0, 0, 38, 3, 3]), random, Buffer.from([0, 0x13, 1, 0])]))
}
