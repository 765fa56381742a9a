import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ControlCall, DOORS_PROTOCOL, type DoorsChange, fromDoors, type FromDoors } from '@airlock/contract'
import { createLog, deadline, waitFor } from '@airlock/std'
import { LineSocket, listenForConnections, type PrivateListener } from '@airlock/wire'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ControlPlaneLink, type LateOpen } from './control-plane-link.ts'

const ONE = 'sbx_0000000000aaaaaaaaaaaaaaaa'
const TWO = 'sbx_0000000000bbbbbbbbbbbbbbbb'
const TOKEN = { token: 'alt_new', lifeMs: 600_000, expiresAt: '2026-01-01T00:00:00.000Z' }
const NOT_READY = { code: 'not_ready', retryable: true }

let dir: string
let link: ControlPlaneLink
let late: LateOpen[]
let controlPlane: PrivateListener | undefined
/** The latest connection of the doors, at the control plane. */
let line: LineSocket | undefined
let heard: FromDoors[]
let changes: DoorsChange[]
/** How the control plane answers hello and pings. */
let protocol: number | undefined
let answersPings: boolean

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-link-'))
  heard = []
  changes = []
  late = []
  protocol = DOORS_PROTOCOL
  answersPings = true
  const log = createLog({ process: 'doors', level: 'silent', write: () => {} })
  link = new ControlPlaneLink({
    socket: join(dir, 'control-plane.sock'),
    log,
    onChanged: (change) => changes.push(change),
    modelCalls: () => ['cal_held'],
    onCut: () => {},
    onLost: () => {},
    onLateOpen: (open) => late.push(open),
    onLateConnection: () => {},
    onLateTool: () => {},
    pingMs: 20,
  })
  link.open()
})

afterEach(() => {
  link.close()
  controlPlane?.close()
  controlPlane = undefined
  rmSync(dir, { recursive: true })
})

it('refuses at once while nobody is there, and asks when the control plane is back', async () => {
  await expect(ask()).rejects.toMatchObject(NOT_READY)
  await listen()
  expect(await asked()).toEqual(TOKEN)
})

it('asks on one connection, and takes answers in any order', async () => {
  await ready()
  const [first, second] = [ask(ONE), ask(TWO)]
  await expect.poll(calls).toHaveLength(2)
  const [one, two] = calls()
  expect([one?.call, two?.call]).toEqual([callOf(ONE), callOf(TWO)])
  say({ type: 'answer', id: two?.id, value: { ...TOKEN, token: 'alt_two' } })
  expect(await second).toMatchObject({ token: 'alt_two' })
  say({ type: 'answer', id: one?.id, value: TOKEN })
  expect(await first).toEqual(TOKEN)
})

it('passes a refusal on as it is, and takes an answer that was not agreed for none', async () => {
  await ready()
  const error = { code: 'approval_required', message: 'Somebody must.', hint: 'Wait.', approval: 'apr_1' }
  const refused = ask()
  await expect.poll(calls).toHaveLength(1)
  say({ type: 'refusal', id: calls()[0]?.id, error })
  await expect(refused).rejects.toMatchObject(error)
  const odd = ask()
  await expect.poll(calls).toHaveLength(2)
  say({ type: 'answer', id: calls()[1]?.id, value: { ...TOKEN, admin: true } })
  await expect(odd).rejects.toMatchObject(NOT_READY)
})

it('refuses what is under way when the connection breaks, and connects again', async () => {
  await ready()
  const broken = ask()
  await expect.poll(calls).toHaveLength(1)
  line?.destroy()
  await expect(broken).rejects.toMatchObject(NOT_READY)
  expect(await asked()).toEqual(TOKEN)
})

it('refuses what is under way when the control plane keeps the connection and stands still', async () => {
  await ready()
  const held = ask()
  await expect.poll(calls).toHaveLength(1)
  answersPings = false
  protocol = undefined
  await expect(held).rejects.toMatchObject(NOT_READY)
  await expect(ask()).rejects.toMatchObject(NOT_READY)
  answersPings = true
  protocol = DOORS_PROTOCOL
  expect(await asked()).toEqual(TOKEN)
})

it('does not talk to a control plane of another protocol', async () => {
  protocol = DOORS_PROTOCOL + 1
  await listen()
  await expect.poll(() => heard.filter(({ type }) => type === 'hello').length).toBeGreaterThan(2)
  await expect(ask()).rejects.toMatchObject(NOT_READY)
  expect(calls()).toEqual([])
})

it('ends a connection on which something comes that was not agreed', async () => {
  for (const said of ['noise', '{"type":"answer"}', '{"type":"pong","more":1}']) {
    await ready()
    const broken = ask()
    await expect.poll(calls).toHaveLength(1)
    line?.send(said)
    await expect(broken).rejects.toMatchObject(NOT_READY)
    controlPlane?.close()
    heard = []
  }
})

it('tells the control plane when nobody waits for an answer any more', async () => {
  await ready()
  const gone = new AbortController()
  const left = link.call(callOf(ONE), { answerMs: 100_000, signal: gone.signal })
  const late = link.call(callOf(TWO), { answerMs: 1, signal: new AbortController().signal })
  await expect(late).rejects.toMatchObject(NOT_READY)
  gone.abort()
  await expect(left).rejects.toMatchObject(NOT_READY)
  await expect.poll(() => heard.filter(({ type }) => type === 'cancel')).toHaveLength(2)
  const [first, second] = calls()
  expect(heard.filter(({ type }) => type === 'cancel')).toEqual([
    { type: 'cancel', id: second?.id },
    { type: 'cancel', id: first?.id },
  ])
})

it('bounds the calls of one sandbox, and not those of another by it', async () => {
  await ready()
  const held = Array.from({ length: 32 }, async () => ask(ONE))
  await expect(ask(ONE)).rejects.toMatchObject({ code: 'too_many_requests' })
  const other = ask(TWO)
  await expect.poll(calls).toHaveLength(33)
  for (const { id } of calls()) say({ type: 'answer', id, value: TOKEN })
  expect(await Promise.all([...held, other])).toHaveLength(33)
  const again = ask(ONE)
  await expect.poll(calls).toHaveLength(34)
  say({ type: 'answer', id: calls()[33]?.id, value: TOKEN })
  expect(await again).toEqual(TOKEN)
})

it('refuses what a sandbox has under way when it is revoked, and says what changed', async () => {
  await ready()
  const [revoked, other] = [ask(ONE), ask(TWO)]
  await expect.poll(calls).toHaveLength(2)
  const change: DoorsChange = { what: 'revoked', sandboxes: [ONE] }
  say({ type: 'changed', change: { what: 'policy', sandboxes: null } })
  say({ type: 'changed', change })
  await expect(revoked).rejects.toMatchObject({ code: 'token_refused' })
  expect(changes).toEqual([{ what: 'policy', sandboxes: null }, change])
  say({ type: 'answer', id: calls()[1]?.id, value: TOKEN })
  expect(await other).toEqual(TOKEN)
})

it('hands an open of a model call that was given up to who closes it, when its answer comes late', async () => {
  await ready()
  const asked = { sandbox: ONE, route: 'chat', model: 'm', stream: true } as const
  const bounds = { inputTokens: 1, maxOutputTokens: 1, ceilingMicroDollars: 1 }
  const gone = new AbortController()
  const given = link.openModelCall({ ...asked, ...bounds }, { answerMs: 100_000, signal: gone.signal })
  await expect.poll(calls).toHaveLength(1)
  gone.abort()
  await expect(given).rejects.toMatchObject(NOT_READY)
  say({ type: 'answer', id: calls()[0]?.id, value: { callId: 'cal_1', reservation: null } })
  await expect.poll(() => late).toEqual([{ callId: 'cal_1', sandbox: ONE }])
})

const callOf = (sandbox: string): ControlCall => ({ sandbox, token: 'alt_x', ask: 'renew' })
const ask = async (sandbox = ONE) =>
  link.call(callOf(sandbox), { answerMs: 100_000, signal: new AbortController().signal })
const say = (frame: object) => line?.send(JSON.stringify(frame))
const calls = () => heard.filter((frame) => frame.type === 'call')

async function listen(): Promise<void> {
  controlPlane = await listenForConnections(
    { unix: join(dir, 'control-plane.sock'), uid: null },
    {
      maxConnections: 8,
      onConnection: (socket) => {
        const lines = new LineSocket(socket, { onLine: (said) => hear(lines, said), onClose: () => {} })
        lines.resume()
        line = lines
      },
    },
  )
}

function hear(lines: LineSocket, said: string): void {
  const frame = fromDoors.parse(JSON.parse(said))
  if (frame.type === 'ping') return answersPings ? lines.send('{"type":"pong"}') : undefined
  heard.push(frame)
  if (frame.type === 'hello' && protocol !== undefined) lines.send(JSON.stringify({ type: 'hello', protocol }))
}

/** Listens, and resolves when calls are taken; what was asked until then is forgotten. */
async function ready(): Promise<void> {
  await listen()
  await asked()
  heard = []
}

/** Asks until the link is there, and answers that one call. */
async function asked(): Promise<unknown> {
  heard = []
  return waitFor(
    async () => {
      const answer = ask()
      answer.catch(() => {})
      const isSent = await Promise.race([answer.then(() => false).catch(() => false), sent()])
      if (!isSent) return undefined
      say({ type: 'answer', id: calls().at(-1)?.id, value: TOKEN })
      return answer
    },
    { signal: deadline(100_000), everyMs: 10 },
  )
}

async function sent(): Promise<boolean> {
  await expect.poll(calls).toHaveLength(1)
  return true
}
