import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DOORS_PROTOCOL, fromDoors } from '@airlock/contract'
import { createLog, deadline, waitFor } from '@airlock/std'
import { LineSocket, listenForConnections, type PrivateListener } from '@airlock/wire'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compose } from './compose.ts'

const ONE = 'sbx_0000000000aaaaaaaaaaaaaaaa'
const TWO = 'sbx_0000000000bbbbbbbbbbbbbbbb'

const PREPARE = fileURLToPath(new URL('../../../dist/doors/prepare.js', import.meta.url))

let home: string
let running: { stop(): Promise<void> }
let controlPlane: PrivateListener | undefined
/** Its end of the connection of the doors. */
let line: LineSocket | undefined
/** What the control plane was asked, and what it answers. */
let asked: unknown[]
let answer: object

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'airlock-doors-'))
  for (const sandbox of [ONE, TWO]) mkdirSync(join(home, 'doors', sandbox, 'control'), { recursive: true })
  asked = []
  answer = { type: 'refusal', error: { code: 'token_refused', message: 'no', hint: '' } }
  await listen()
  running = await start()
})

afterEach(async () => {
  await running.stop()
  controlPlane?.close()
  controlPlane = undefined
  rmSync(home, { recursive: true })
})

it('listens for the control plane alone', () => {
  expect(statSync(join(home, 'doors.sock')).mode & 0o777).toBe(0o600)
})

it('opens and shuts doors as it is told, each as often as it likes', async () => {
  for (const sandbox of [ONE, TWO, ONE]) expect(await tell('PUT', `/doors/${sandbox}`, OPEN)).toEqual([200, {}])
  expect(await tell('GET', '/doors')).toEqual([200, { sandboxes: [ONE, TWO].map(opened) }])
  for (const _ of [1, 2]) expect(await tell('DELETE', `/doors/${ONE}`)).toEqual([200, {}])
  expect(await tell('GET', '/doors')).toEqual([200, { sandboxes: [opened(TWO)] }])
  expect([existsSync(socketOf(ONE)), existsSync(socketOf(TWO))]).toEqual([false, true])
})

it('opens none where nobody made a place for it, and none outside of its own directory', async () => {
  const absent = 'sbx_0000000000cccccccccccccccc'
  expect(await tell('PUT', `/doors/${absent}`, OPEN)).toMatchObject([404, { error: { code: 'sandbox_not_found' } }])
  for (const path of ['/doors/..', '/doors/..%2F..', '/doors/x/y', '/else'])
    expect(await tell('PUT', path, OPEN)).toMatchObject([404, { error: { code: 'route_not_found' } }])
})

it('asks the control plane in the name of the sandbox whose socket it was, and passes its answer on', async () => {
  for (const sandbox of [ONE, TWO]) await tell('PUT', `/doors/${sandbox}`, OPEN)
  expect(await answered(TWO)).toMatchObject([401, { error: { code: 'token_refused', message: 'no' } }])
  expect(asked).toEqual([{ sandbox: TWO, token: 'alt_x', ask: 'self' }])
})

it('lets nobody pass when the control plane is away, or answers what was not agreed', async () => {
  await tell('PUT', `/doors/${ONE}`, OPEN)
  controlPlane?.close()
  await expect.poll(async () => knock(ONE)).toMatchObject([503, { error: { code: 'not_ready', retryable: true } }])
  asked = []
  await listen()
  expect(await answered(ONE)).toMatchObject([401, {}])
  answer = { type: 'answer', value: { sandbox: ONE, admin: true } }
  expect(await knock(ONE)).toMatchObject([503, { error: { code: 'not_ready' } }])
  answer = { type: 'refusal', error: { code: 'no_such_code', message: '', hint: '' } }
  expect(await knock(ONE)).toMatchObject([503, { error: { code: 'not_ready' } }])
})

it('cuts the connections of a sandbox when its tokens are revoked', async () => {
  for (const sandbox of [ONE, TWO]) await tell('PUT', `/doors/${sandbox}`, OPEN)
  await answered(ONE)
  const [one, two] = [connect(socketOf(ONE)), connect(socketOf(TWO))]
  await Promise.all([one, two].map(async (socket) => once(socket, 'connect')))
  const cut = once(one, 'close')
  line?.send(JSON.stringify({ type: 'changed', change: { what: 'revoked', sandboxes: [ONE] } }))
  await cut
  expect(two.closed).toBe(false)
  two.destroy()
})

it('has answered that a door is open when questions are answered there, if somebody answers them', async () => {
  controlPlane?.close()
  // Nobody listens for so long that the next dial would come late.
  await new Promise((resolve) => setTimeout(resolve, 400))
  await listen()
  await tell('PUT', `/doors/${ONE}`, OPEN)
  expect(await knock(ONE)).toMatchObject([401, {}])
})

it('remembers nothing over a restart, and takes the places of its sockets again', async () => {
  await tell('PUT', `/doors/${ONE}`, OPEN)
  await running.stop()
  expect(existsSync(socketOf(ONE))).toBe(false)
  running = await start()
  expect(await tell('GET', '/doors')).toEqual([200, { sandboxes: [] }])
  expect(await tell('PUT', `/doors/${ONE}`, OPEN)).toEqual([200, {}])
})

const OPEN = { doors: [{ door: 'control', version: '1' }] }
const opened = (sandbox: string) => ({ sandbox, ...OPEN })
const socketOf = (sandbox: string) => join(home, 'doors', sandbox, 'control', 'airlock.sock')

async function start(): Promise<{ stop(): Promise<void> }> {
  const log = createLog({ process: 'doors', level: 'silent', write: () => {} })
  const egress = {
    resolvers: [],
    listed: [],
    bitsPerSecond: 1e8,
    connections: 8,
    bytes: 1e9,
    idleMs: 60_000,
    totalMs: 60_000,
  }
  const sockets = {
    socket: join(home, 'doors.sock'),
    controlPlaneSocket: join(home, 'control-plane.sock'),
    keysSocket: null,
    prepareProgram: PREPARE,
  }
  const rest = { egress, socketUid: null, drop: null, logLevel: 'silent', failpoint: null } as const
  return compose({ doorsDir: join(home, 'doors'), ...sockets, ...rest }, { log, failpoint: async () => {} })
}

/** A control plane that answers every call with `answer`. */
async function listen(): Promise<void> {
  controlPlane = await listenForConnections(
    { unix: join(home, 'control-plane.sock'), uid: null },
    {
      maxConnections: 8,
      onConnection: (socket) => {
        const lines = new LineSocket(socket, { onLine: (line) => hear(lines, line), onClose: () => {} })
        lines.resume()
        line = lines
      },
    },
  )
}

function hear(lines: LineSocket, said: string): void {
  const frame = fromDoors.parse(JSON.parse(said))
  if (frame.type === 'hello') lines.send(JSON.stringify({ type: 'hello', protocol: DOORS_PROTOCOL }))
  if (frame.type !== 'call') return
  asked.push(frame.call)
  lines.send(JSON.stringify({ id: frame.id, ...answer }))
}

/** Knocks until the doors have found the control plane. */
async function answered(sandbox: string): Promise<readonly [number, unknown]> {
  return waitFor(
    async () => {
      const [status, body] = await knock(sandbox)
      return status !== 401 && asked.length === 0 ? undefined : ([status, body] as const)
    },
    { signal: deadline(100_000), everyMs: 100 },
  )
}

async function tell(method: string, path: string, body?: object): Promise<readonly [number, unknown]> {
  return call({ socketPath: join(home, 'doors.sock'), method, path }, body)
}

async function knock(sandbox: string): Promise<readonly [number, unknown]> {
  const headers = { host: 'airlock', authorization: 'Bearer alt_x' }
  return call({ socketPath: socketOf(sandbox), method: 'GET', path: '/v1/self', headers })
}

async function call(at: object, body?: object): Promise<readonly [number, unknown]> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...at, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve([response.statusCode ?? 0, JSON.parse(text)]))
    })
    outgoing.on('error', reject).end(body && JSON.stringify(body))
  })
}
