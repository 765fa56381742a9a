import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deadline, waitFor } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DoorToken } from './door-token.ts'

const USER = { uid: 1000, gid: 1000 }

let dir: string
let server: Server | undefined
/** What came to the door, and what it answers; undefined hangs up. */
let asked: string[]
let answers: (readonly [number, object] | undefined)[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-token-'))
  mkdirSync(join(dir, 'control'))
  asked = []
  answers = []
})

afterEach(async () => {
  await stop()
  rmSync(dir, { recursive: true })
})

it('writes what it is given where user code reads it and cannot change it', () => {
  new DoorToken(dir, USER).take({ token: 'first', lifeMs: 60_000 })
  expect(readFileSync(join(dir, 'token'), 'utf8')).toBe('first\n')
  const { uid, gid, mode } = statSync(join(dir, 'token'))
  expect({ uid, gid, mode: mode & 0o777 }).toEqual({ uid: 0, gid: 1000, mode: 0o440 })
  expect(readlinkSync(join(dir, 'airlock.sock'))).toBe('control/airlock.sock')
})

it('renews it at half of its life, with the one before', async () => {
  answers = [[200, { token: 'second', lifeMs: 60_000, expiresAt: 'x' }]]
  await listen()
  new DoorToken(dir, USER).take({ token: 'first', lifeMs: 200 })
  await written('second')
  expect(asked).toEqual(['POST /v1/self/token Bearer first'])
})

it('asks again while a door hangs up or says that it is not ready', async () => {
  answers = [undefined, [503, { error: {} }], [200, { token: 'second', lifeMs: 60_000, expiresAt: 'x' }]]
  await listen()
  new DoorToken(dir, USER).take({ token: 'first', lifeMs: 4_000 })
  await written('second')
  expect(asked).toHaveLength(3)
})

it('does not ask again once it was refused, until it is given another', async () => {
  answers = [
    [401, { error: {} }],
    [200, { token: 'third', lifeMs: 60_000, expiresAt: 'x' }],
  ]
  await listen()
  const token = new DoorToken(dir, USER)
  token.take({ token: 'first', lifeMs: 100 })
  await waitFor(() => (asked.length === 1 ? true : undefined), { signal: deadline(100_000), everyMs: 5 })
  token.take({ token: 'second', lifeMs: 100 })
  await written('third')
  expect(asked).toEqual(['POST /v1/self/token Bearer first', 'POST /v1/self/token Bearer second'])
})

it('drops an answer that comes after it was given another', async () => {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  answers = [[200, { token: 'late', lifeMs: 60_000, expiresAt: 'x' }]]
  await listen(held)
  const token = new DoorToken(dir, USER)
  token.take({ token: 'first', lifeMs: 50 })
  await waitFor(() => (asked.length === 1 ? true : undefined), { signal: deadline(100_000), everyMs: 5 })
  token.take({ token: 'newer', lifeMs: 60_000 })
  release()
  await stop()
  expect(readFileSync(join(dir, 'token'), 'utf8')).toBe('newer\n')
})

async function written(token: string): Promise<void> {
  const read = () => (readFileSync(join(dir, 'token'), 'utf8') === `${token}\n` ? true : undefined)
  await waitFor(read, { signal: deadline(100_000), everyMs: 5 })
}

async function listen(held: Promise<void> = Promise.resolve()): Promise<void> {
  const listener = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    const answer = answers.shift()
    if (!answer) return void response.destroy()
    void held.then(() => response.writeHead(answer[0]).end(JSON.stringify(answer[1])))
  })
  server = listener
  await new Promise<void>((resolve) => listener.listen(join(dir, 'control', 'airlock.sock'), resolve))
}

/** Resolves when everything that it was asked is answered. */
async function stop(): Promise<void> {
  const listener = server
  server = undefined
  if (listener) await new Promise((resolve) => listener.close(resolve))
}
