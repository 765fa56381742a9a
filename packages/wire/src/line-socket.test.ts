import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { LineSocket } from './line-socket.ts'
import { MAX_LINE_BYTES } from './lines.ts'
import { listenForConnections, type PrivateListener } from './private-listener.ts'

let dir: string
let listener: PrivateListener
let heard: string[]
let bounds: { readonly lineMs?: number }

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-wire-'))
  heard = []
  bounds = {}
  const onConnection = (socket: Socket) => {
    const onLine = (line: string) => {
      heard.push(line)
      lines.send(`heard ${line.length}`)
    }
    const lines = new LineSocket(socket, { onLine, onClose: () => heard.push('closed'), ...bounds })
    lines.resume()
  }
  listener = await listenForConnections(
    { unix: join(dir, 'lines.sock'), uid: null },
    { maxConnections: 8, onConnection },
  )
})

afterEach(() => {
  listener.close()
  rmSync(dir, { recursive: true })
})

const dial = () => connect(join(dir, 'lines.sock'))

it('hears whole lines, however they are cut', async () => {
  const socket = dial()
  for (const piece of ['o', 'ne\ntw', 'o\n', 'thr']) socket.write(piece)
  await expect.poll(() => heard).toEqual(['one', 'two'])
  socket.write('ee\n')
  await expect.poll(() => heard).toEqual(['one', 'two', 'three'])
  socket.destroy()
  await expect.poll(() => heard.at(-1)).toBe('closed')
})

it('answers a line at the bound, and ends a connection with one above it', async () => {
  const socket = dial()
  socket.write(`${'x'.repeat(MAX_LINE_BYTES)}\n`)
  expect(String((await once(socket, 'data'))[0])).toBe(`heard ${MAX_LINE_BYTES}\n`)
  const other = dial()
  // Being cut off in the middle of a write is what is tested.
  other.on('error', () => {})
  other.write('x'.repeat(MAX_LINE_BYTES + 1))
  await new Promise((resolve) => other.on('close', resolve))
  expect(heard.map((line) => line.length)).toEqual([MAX_LINE_BYTES, 'closed'.length])
  socket.destroy()
})

it('ends a connection that leaves a line unfinished, and keeps one that is silent between lines', async () => {
  bounds = { lineMs: 20 }
  const silent = dial()
  silent.write('one\n')
  await once(silent, 'data')
  const half = dial()
  half.write('two\nthr')
  await once(half.resume(), 'close')
  expect(heard).not.toContain('thr')
  silent.write('four\n')
  expect(String((await once(silent, 'data'))[0])).toBe('heard 4\n')
  silent.destroy()
})
