import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AirlockError, type DoorCall, DOORS_PROTOCOL, type DoorsChange } from '@airlock/contract'
import { createLog } from '@airlock/std'
import type { PrivateListener } from '@airlock/wire'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DoorNews } from '../doors/door-news.ts'
import { listenToDoors } from './doors-server.ts'

const SANDBOX = 'sbx_0000000000aaaaaaaaaaaaaaaa'
const CALL = { sandbox: SANDBOX, token: 'alt_x', ask: 'self' } as const
const HELLO = { type: 'hello', protocol: DOORS_PROTOCOL, process: 'doors-1', modelCalls: [] }
const GREETING = { type: 'hello', protocol: DOORS_PROTOCOL }

let dir: string
let news: DoorNews
let listener: PrivateListener
let logged: string[]
let answer: (call: DoorCall, signal: AbortSignal) => Promise<never>

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-doors-server-'))
  news = new DoorNews()
  logged = []
  answer = async () => Promise.reject(new AirlockError('token_refused'))
  const log = createLog({ process: 'control-plane', level: 'info', write: (line) => void logged.push(line) })
  const calls = {
    answer: async (call: DoorCall, { signal }: { readonly signal: AbortSignal }) => answer(call, signal),
    greeted: () => {},
    lost: () => {},
  }
  const uid = process.getuid?.() ?? 0
  listener = await listenToDoors({ calls, news, path: join(dir, 'doors.sock'), uid, log })
})

afterEach(() => {
  listener.close()
  rmSync(dir, { recursive: true })
})

it('greets, answers calls and pings, and pushes what changed', async () => {
  const doors = await dial(HELLO)
  expect(await doors.hears(1)).toEqual([GREETING])
  doors.say({ type: 'call', id: 7, call: CALL }, { type: 'ping' })
  const refusal = { code: 'token_refused', message: expect.any(String), hint: expect.any(String) }
  expect(await doors.hears(3)).toEqual([GREETING, { type: 'pong' }, { type: 'refusal', id: 7, error: refusal }])
  const change: DoorsChange = { what: 'revoked', sandboxes: [SANDBOX] }
  news.publish(change)
  expect((await doors.hears(4)).at(-1)).toEqual({ type: 'changed', change })
})

it('tells doors of another protocol which one it speaks, and hears nothing else of them', async () => {
  const doors = await dial({ ...HELLO, protocol: DOORS_PROTOCOL + 1 })
  await doors.closed
  expect(await doors.hears(1)).toEqual([GREETING])
})

it.each([
  ['a call before hello', [{ type: 'call', id: 1, call: CALL }]],
  ['a second hello', [HELLO, HELLO]],
  ['a field that was not agreed', [HELLO, { type: 'ping', more: 1 }]],
  ['an id that is taken', [HELLO, { type: 'call', id: 1, call: CALL }, { type: 'call', id: 1, call: CALL }]],
  ['no JSON', [HELLO, 'noise']],
])('ends a connection with %s', async (_what, frames) => {
  answer = async () => new Promise(() => {})
  await (
    await dial(...frames)
  ).closed
  expect(logged.join()).toContain('closing the connection of the doors')
})

it('does nothing of what comes in one piece with the frame that ended the connection', async () => {
  let calls = 0
  answer = async () => {
    calls += 1
    return new Promise(() => {})
  }
  const doors = await dial(HELLO)
  await doors.hears(1)
  doors.socket.write(`noise\n${JSON.stringify({ type: 'call', id: 1, call: CALL })}\n`)
  await doors.closed
  expect(calls).toBe(0)
})

it('ends calls that nobody waits for: those that are cancelled, and all when the connection is gone', async () => {
  const ended: number[] = []
  let begun = 0
  answer = async (_call, signal) => {
    const at = ++begun
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        ended.push(at)
        reject(new AirlockError('internal'))
      })
    })
  }
  const doors = await dial(HELLO, ...[1, 2, 3].map((id) => ({ type: 'call', id, call: CALL })))
  await expect.poll(() => begun).toBe(3)
  doors.say({ type: 'cancel', id: 2 })
  await expect.poll(() => ended).toEqual([2])
  doors.socket.destroy()
  await expect.poll(() => ended).toEqual([2, 1, 3])
  expect(logged).toEqual([])
})

it('never sends the text of an error that is not ours', async () => {
  answer = async () => Promise.reject(new TypeError('/srv/secret'))
  const doors = await dial(HELLO, { type: 'call', id: 1, call: CALL })
  expect(JSON.stringify(await doors.hears(2))).toContain('"internal"')
  expect(JSON.stringify(await doors.hears(2))).not.toContain('secret')
  expect(logged.join()).toContain('secret')
})

interface Dialled {
  readonly socket: Socket
  readonly closed: Promise<unknown>
  say(...frames: readonly (object | string)[]): void
  /** All that was heard, once it is so much. */
  hears(count: number): Promise<readonly unknown[]>
}

async function dial(...frames: readonly (object | string)[]): Promise<Dialled> {
  const socket = connect(join(dir, 'doors.sock'))
  await once(socket, 'connect')
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  socket.on('error', () => {})
  const heard = (): readonly unknown[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line): unknown => JSON.parse(line))
  const say = (...said: readonly (object | string)[]) => {
    for (const one of said) socket.write(`${typeof one === 'string' ? one : JSON.stringify(one)}\n`)
  }
  say(...frames)
  const hears = async (count: number) => {
    await expect.poll(() => heard().length).toBeGreaterThanOrEqual(count)
    return heard()
  }
  return { socket, closed: once(socket, 'close'), say, hears }
}
