import { AirlockError } from '@airlock/contract'
import type { DoorsNews } from './door-news.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { Sandboxes } from '../sandboxes/sandboxes.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, caller, CALLER, World } from '../testing/world.ts'

let recorder: TestRecorder
let world: World

beforeAll(async () => {
  recorder = await TestRecorder.start()
})
afterAll(() => recorder?.stop())
beforeEach(async () => {
  world = await World.make(recorder)
})
afterEach(() => world?.close())

const create = async () => (await world.lifecycle.creation.create(CALLER, aSandbox())).id
const connect = (id: string, as = CALLER) => world.lifecycle.connections.connect(as, id, { revoke: false })
const end = (id: string) => world.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'key:test' })
const connects = async (id: string) =>
  (await world.connections(id)).map(({ status, payload }) => ({ status, cause: payload['cause'] }))

it('a sandbox is created with an open door and a token, and with their record', async () => {
  const id = await create()
  expect([...world.doors.opened]).toEqual([id])
  expect(world.plane.tokens.get(id)).toMatch(/^alt_/)
  expect(await connects(id)).toEqual([{ status: 'done', cause: 'creation' }])
  const text = JSON.stringify([await world.evidence(id), await world.connections(id)])
  expect(text).not.toContain(world.plane.tokens.get(id))
})

it('a sandbox that cannot have its door is not created', async () => {
  world.doors.isDead = true
  await expect(create()).rejects.toMatchObject({ code: 'door_unavailable' })
  expect([...world.plane.sandboxes]).toEqual([])
}, 20_000)

it('a sandbox whose guest takes no token is not created, and its door is shut', async () => {
  world.plane.script('PUT /sandboxes/:id/token', () => {
    throw new AirlockError('guest_lost')
  })
  await expect(create()).rejects.toMatchObject({ code: 'guest_lost' })
  expect([[...world.plane.sandboxes], [...world.doors.opened]]).toEqual([[], []])
})

it('the door is shut before the sandbox is stopped', async () => {
  const id = await create()
  let wasOpen: boolean | undefined
  world.plane.script('DELETE /sandboxes/:id', () => {
    wasOpen = world.doors.opened.has(id)
    return { existed: true, usage: null }
  })
  await end(id)
  expect(wasOpen).toBe(false)
})

it('doors that do not answer hold up no end, and are shut when they are back', async () => {
  const id = await create()
  world.doors.isDead = true
  expect(await end(id)).toMatchObject({ state: 'stopped' })
  world.doors.isDead = false
  await world.sweep()
  expect([...world.doors.opened]).toEqual([])
})

it('doors that were restarted are opened again, for who lives', async () => {
  const [one, two] = [await create(), await create()]
  await end(two)
  world.doors.opened.clear()
  await world.sweep()
  expect([...world.doors.opened]).toEqual([one])
})

it('a door whose configuration is another than its sandbox has now is opened with that, and no other is', async () => {
  const [one, two] = [await create(), await create()]
  const wanted = world.doors.configs.get(one)
  expect(wanted).toEqual([{ door: 'control', version: expect.any(String) }])
  world.doors.configs.set(one, [{ door: 'control', version: 'older' }])
  world.doors.calls.length = 0
  await world.sweep()
  expect(world.doors.calls).toEqual([`open ${one}`])
  expect([world.doors.configs.get(one), world.doors.configs.get(two)]).toEqual([wanted, wanted])
})

it('a door of a sandbox that there never was is shut', async () => {
  const id = await create()
  world.doors.opened.add('sbx_0000000000aaaaaaaaaaaaaaaa')
  await world.sweep()
  expect([...world.doors.opened]).toEqual([id])
})

it('a sandbox that was made without a place for doors is left as it is, and keeps no other door shut', async () => {
  const [old, young] = [await create(), await create()]
  await world.restart()
  world.doors.opened.clear()
  world.doors.doorless.add(old)
  const token = world.plane.tokens.get(old)
  await world.sweep()
  await world.sweep()
  expect([...world.doors.opened]).toEqual([young])
  expect(world.doors.calls.filter((call) => call === `open ${old}`)).toHaveLength(2)
  expect(world.plane.tokens.get(old)).toBe(token)
  await expect(connect(old)).rejects.toMatchObject({
    code: 'door_unavailable',
    message: expect.stringContaining('without'),
  })
})

it('a sandbox gets a token when its own ran out, and none while it is good', async () => {
  const id = await create()
  const first = world.plane.tokens.get(id)
  await world.sweep()
  expect(world.plane.tokens.get(id)).toBe(first)
  world.clock.advance(599_999)
  await new Sandboxes(world.context, world.lifecycle).extend(CALLER, id, {})
  await world.sweep()
  expect(world.plane.tokens.get(id)).toBe(first)
  world.clock.advance(1)
  await world.sweep()
  expect(world.plane.tokens.get(id)).not.toBe(first)
  expect(await connects(id)).toEqual([
    { status: 'done', cause: 'creation' },
    { status: 'done', cause: 'token ran out' },
  ])
})

it('a control plane that was restarted gives every sandbox a token, for it may have been away for long', async () => {
  const id = await create()
  const first = world.plane.tokens.get(id)
  await world.restart()
  await world.sweep()
  expect(world.plane.tokens.get(id)).not.toBe(first)
})

it('a guest that does not take its token is asked again later, not at every look', async () => {
  const id = await create()
  await world.restart()
  world.plane.calls.length = 0
  world.plane.script('PUT /sandboxes/:id/token', () => {
    throw new AirlockError('guest_lost')
  })
  await world.sweep()
  await world.sweep()
  expect(world.plane.calls.filter((call) => call.startsWith('PUT'))).toEqual([`PUT /sandboxes/${id}/token`])
})

it('who connects a sandbox is told how a program inside reaches us, and the sandbox has the token', async () => {
  const id = await create()
  const first = world.plane.tokens.get(id)
  expect(await connect(id)).toEqual({
    sandbox: id,
    agent: 'default',
    generation: 1,
    socket: '/run/airlock/airlock.sock',
    tokenFile: '/run/airlock/token',
    env: {
      AIRLOCK_SOCKET: '/run/airlock/airlock.sock',
      AIRLOCK_TOKEN_FILE: '/run/airlock/token',
      AIRLOCK_SANDBOX_ID: id,
      AIRLOCK_AGENT_ID: 'default',
    },
    scopes: ['self', 'heartbeat', 'renew', 'ask', 'tool'],
    expiresAt: new Date(world.clock.now() + 600_001).toISOString(),
  })
  expect(world.plane.tokens.get(id)).not.toBe(first)
  expect((await world.story(id)).slice(-2)).toEqual(['sandbox.connect requested', 'sandbox.connect done'])
})

it('the doors are told what no longer holds: tokens that are revoked, and a sandbox that ends', async () => {
  const told: DoorsNews[] = []
  world.context.doorNews.subscribe((change) => told.push(change))
  const id = await create()
  await connect(id)
  expect(told).toEqual([])
  await world.lifecycle.connections.connect(CALLER, id, { revoke: true })
  await end(id)
  expect(told).toEqual([
    { what: 'revoked', sandboxes: [id] },
    { what: 'shut', sandboxes: [id] },
  ])
})

it('connecting is for who may use the sandbox', async () => {
  const id = await create()
  await expect(connect(id, caller({ tenant: 'globex' }))).rejects.toMatchObject({ code: 'sandbox_not_found' })
  await expect(connect(id, caller({ agents: ['other'] }))).rejects.toMatchObject({ code: 'sandbox_not_found' })
  await end(id)
  await expect(connect(id)).rejects.toMatchObject({ code: 'sandbox_ended' })
})
