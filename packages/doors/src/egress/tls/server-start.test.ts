import { expect, it } from 'vitest'
import { record } from '../testing/hello.ts'
import { ServerStartReader } from './server-start.ts'

const RETRY = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')
const OTHER = Buffer.alloc(32, 5)
const WARNING = record(21, Buffer.from([1, 112]))

const hello = (random: Buffer) => Buffer.concat([Buffer.from([2, 0, 0, 38, 3, 3]), random, Buffer.from([0, 19, 1, 0])])

it.each<readonly [string, Buffer, string]>([
  ['a ServerHello', record(22, hello(OTHER)), 'hello'],
  ['a request for a second ClientHello', record(22, hello(RETRY)), 'retry'],
  ['one behind a warning', Buffer.concat([WARNING, record(22, hello(RETRY))]), 'retry'],
  [
    'one in records of one byte',
    Buffer.concat([...hello(RETRY)].map((byte) => record(22, Buffer.from([byte])))),
    'retry',
  ],
])('%s is known wherever it is cut', (_, bytes, expected) => {
  expect(new ServerStartReader().push(bytes)).toBe(expected)
  const reader = new ServerStartReader()
  const seen = Array.from(bytes, (byte) => reader.push(Buffer.from([byte])))
  expect(seen.find((start) => start !== undefined)).toBe(expected)
})

it.each<readonly [string, Buffer, string]>([
  ['a greeting', Buffer.from('220 mail.example ESMTP\r\n'), 'is not TLS'],
  ['HTTP', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 'is not TLS'],
  ['application data', record(23, Buffer.alloc(50)), 'is not TLS'],
  ['another message', record(22, Buffer.from([1, 0, 0, 0])), 'is not a ServerHello'],
  ['an alert inside of its message', Buffer.concat([record(22, Buffer.from([2])), WARNING]), 'is not TLS'],
  ['nothing but alerts', Buffer.concat(Array.from({ length: 10_000 }, () => WARNING)), 'is too long'],
])('%s is refused', (_, bytes, why) => {
  expect(() => new ServerStartReader().push(bytes)).toThrow(why)
})
