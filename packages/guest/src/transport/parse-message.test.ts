import type { HostMessage } from '@airlock/contract/guest'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseHostMessage } from './parse-message.ts'

const command = {
  id: 'cmd_1',
  channel: 1,
  argv: ['true'],
  cwd: '/',
  env: { A: 'b' },
  stdin: 'none',
  timeoutMs: 1,
  maxOutputBytes: 0,
} as const

const good: readonly HostMessage[] = [
  { type: 'attach', received: [{ channel: 1, offset: 0 }] },
  { type: 'ack', channel: 1, offset: 5 },
  { type: 'eof', channel: 1 },
  { type: 'cancel', channel: 1 },
  { type: 'request', id: 1, request: { op: 'ping' } },
  { type: 'request', id: 1, request: { op: 'run', command } },
  { type: 'request', id: 1, request: { op: 'run', command: { ...command, limits: { openFiles: 64, cpuSeconds: 1 } } } },
  { type: 'request', id: 1, request: { op: 'signal', channel: 1, signal: 'SIGTERM' } },
  { type: 'request', id: 1, request: { op: 'forget', channel: 1 } },
  { type: 'request', id: 1, request: { op: 'file.read', path: 'x', channel: 1 } },
  { type: 'request', id: 1, request: { op: 'file.write', path: 'x', mode: 'append', channel: 1 } },
  { type: 'request', id: 1, request: { op: 'file.pack', path: 'x', channel: 1 } },
  { type: 'request', id: 1, request: { op: 'file.unpack', path: 'x', channel: 1 } },
  { type: 'request', id: 1, request: { op: 'file.stat', path: 'x' } },
  { type: 'request', id: 1, request: { op: 'file.list', path: 'x', limit: 1 } },
  { type: 'request', id: 1, request: { op: 'file.mkdir', path: 'x', parents: true } },
  { type: 'request', id: 1, request: { op: 'file.move', from: 'x', to: 'y' } },
  { type: 'request', id: 1, request: { op: 'file.remove', path: 'x', recursive: false } },
]

const run = (change: object) => ({ type: 'request', id: 7, request: { op: 'run', command: { ...command, ...change } } })

describe('a message of the host', () => {
  it.each(good)('is taken when it fits: %j', (message) => {
    expect(parseHostMessage(message)).toEqual({ kind: 'message', message })
  })

  it.each([
    { type: 'request', id: 7, request: { op: 'sudo' } },
    { type: 'request', id: 7, request: { op: 'toString' } },
    { type: 'request', id: 7, request: { op: 'ping', more: 1 } },
    { type: 'request', id: 7, request: { op: 'file.stat' } },
    { type: 'request', id: 7, request: null },
    run({ id: '../escape' }),
    run({ argv: [] }),
    run({ argv: [''] }),
    run({ argv: ['a\0b'] }),
    run({ env: { 'A=B': 'c' } }),
    run({ env: { '-i': 'c' } }),
    run({ env: { A: 'b\0' } }),
    run({ channel: 0 }),
    run({ timeoutMs: -1 }),
    run({ limits: { openFiles: '64; reboot' } }),
    run({ limits: { openFiles: 0 } }),
    run({ limits: { cpuSeconds: 1.5 } }),
    run({ limits: { memory: 1 } }),
  ])('is refused with the id of its request when it does not fit: %j', (message) => {
    expect(parseHostMessage(message)).toEqual({ kind: 'invalid', requestId: 7 })
  })

  it('is ignored when there is nobody to answer', () => {
    for (const json of [null, 1, 'x', [], {}, { type: 'ack' }, { type: '__proto__' }, { type: 'request', id: -1 }])
      expect(parseHostMessage(json)).toEqual({ kind: 'invalid' })
  })

  it('never makes the parser throw', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (json) => void parseHostMessage(json)),
      { numRuns: 500 },
    )
  })
})
