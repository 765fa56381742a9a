import { connect } from 'node:tls'
import { PassThrough, Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { clientHello, record, records } from '../testing/hello.ts'
import { BEFORE_SECOND_HELLO, ClientHelloReader } from './client-hello.ts'

const KEY_SHARE = 51
const ECH = 0xfe_0d

describe('a ClientHello', () => {
  it('is read wherever it is cut', () => {
    const hello = clientHello()
    for (let at = 1; at < hello.length; at++) {
      const reader = new ClientHelloReader()
      expect(reader.push(hello.subarray(0, at))).toBeUndefined()
      const rest = Buffer.alloc(0)
      expect(reader.push(hello.subarray(at))).toEqual({ serverName: 'example.com', bytes: hello, rest })
    }
  })

  it('is read from records of one byte, which come byte by byte', () => {
    const reader = new ClientHelloReader()
    const found = [...clientHello({ recordBytes: 1 })].map((byte) => reader.push(Buffer.from([byte]))?.serverName)
    expect(found.filter((name) => name !== undefined)).toEqual(['example.com'])
    expect(found.at(-1)).toBe('example.com')
  })

  it('may have a post-quantum key share before its name, over several records', () => {
    const extensions = [[KEY_SHARE, Buffer.alloc(20_000, 1)]] as const
    expect(read(clientHello({ extensions }))).toBe('example.com')
  })

  it('of Node is read', async () => {
    expect(read(await helloOfNode('example.com'))).toBe('example.com')
  })

  it('ends where its message ends, and what follows is not part of it', () => {
    const rest = record(23, Buffer.from('early'))
    const hello = new ClientHelloReader().push(Buffer.concat([clientHello(), rest]))
    expect(hello).toEqual({ serverName: 'example.com', bytes: clientHello(), rest })
  })

  it('of 64 KB in records of one byte is read in linear time', () => {
    // Each byte used to cost a pass over all before it: 17 seconds.
    const hello = clientHello({ extensions: [[KEY_SHARE, Buffer.alloc(9_700, 1)]], recordBytes: 1 })
    const reader = new ClientHelloReader()
    const before = process.cpuUsage()
    const found = Array.from(hello, (byte) => reader.push(Buffer.from([byte])))
    expect(found.at(-1)?.serverName).toBe('example.com')
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000)
  })

  it('names its host in any case', () => {
    expect(read(clientHello({ names: ['EXAMPLE.com'] }))).toBe('example.com')
  })

  it.each<readonly [string, Buffer, string]>([
    ['without a name', clientHello({ names: [] }), 'has no server name'],
    ['with two names', clientHello({ names: ['example.com', 'other.example'] }), 'has more than one server name'],
    ['with two name extensions', clientHello({ extensions: [[0, Buffer.alloc(5)]] }), 'has an extension twice'],
    ['with ECH', clientHello({ extensions: [[ECH, Buffer.alloc(10)]] }), 'hides its name'],
    ['with ESNI', clientHello({ extensions: [[0xff_ce, Buffer.alloc(10)]] }), 'hides its name'],
    ['with an address for a name', clientHello({ names: ['127.0.0.1'] }), 'not a host name'],
    ['with a name that ends with a dot', clientHello({ names: ['example.com.'] }), 'not a host name'],
    ['with a NUL in its name', clientHello({ names: ['example.com\0.other.example'] }), 'The host'],
    ['with an empty name', clientHello({ names: [''] }), 'The host'],
    ['with another one behind it', clientHello({ surplus: clientHello().subarray(5) }), 'has bytes behind it'],
    ['that is too long', clientHello({ extensions: [[KEY_SHARE, Buffer.alloc(65_480)]] }), 'is too long'],
    ['with a record that is too long', record(22, Buffer.alloc(20_000, 1)), 'bad length'],
    ['with an empty record', record(22, Buffer.alloc(0)), 'bad length'],
    ['of SSL 2', Buffer.from([0x80, 0x2e, 1, 0, 2]), 'does not begin with TLS'],
    ['that is an SSH banner', Buffer.from('SSH-2.0-x\r\n'), 'does not begin with TLS'],
    ['that is HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'does not begin with TLS'],
    ['that is HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\n'), 'does not begin with TLS'],
    ['that is a NUL', Buffer.from([0]), 'does not begin with TLS'],
    ['that is another message', records(Buffer.from([2, 0, 0, 0])), 'is not one'],
    ['behind another record', Buffer.concat([record(20, Buffer.from([1])), clientHello()]), 'does not begin with TLS'],
    ['that is cut inside', records(Buffer.from([1, 0, 0, 3, 3, 3, 0])), 'is cut'],
    [
      'with an alert inside of it',
      Buffer.concat([clientHello().subarray(0, 0), records(clientHello().subarray(5, 9)), record(21, Buffer.alloc(2))]),
      'does not begin',
    ],
  ])('%s is refused', (_, bytes, why) => {
    expect(() => read(bytes)).toThrow(why)
  })
})

describe('a second ClientHello', () => {
  it('is read behind a change of cipher and early data', () => {
    const bytes = Buffer.concat([
      record(20, Buffer.from([1])),
      record(23, Buffer.alloc(100)),
      clientHello({ names: ['other.example'] }),
    ])
    const reader = new ClientHelloReader(BEFORE_SECOND_HELLO)
    expect(reader.push(bytes)?.serverName).toBe('other.example')
  })
})

function read(bytes: Buffer): string | undefined {
  return new ClientHelloReader().push(bytes)?.serverName
}

/** What this Node sends first. */
async function helloOfNode(servername: string): Promise<Buffer> {
  const out = new PassThrough()
  const socket = connect({ socket: Duplex.from({ writable: out, readable: new PassThrough() }), servername })
  socket.on('error', () => {})
  const [hello] = await new Promise<Buffer[]>((resolve) => out.once('data', (chunk: Buffer) => resolve([chunk])))
  socket.destroy()
  return hello ?? Buffer.alloc(0)
}
