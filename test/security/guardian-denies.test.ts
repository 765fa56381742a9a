import { isGoverned, type Point, POINTS, ROUTES, type Route, type RouteName } from '@airlock/contract'
import { Airlock, type PolicyDocumentInput } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { GUARDED, type GuardedRoute, type Place } from './guarded-routes.ts'

/** Every route with an effect that Guardian is asked about is denied once by a policy, and the effect is absent. */
const names = Object.keys(GUARDED) as readonly GuardedRoute[]
const table: Readonly<Record<RouteName, Route>> = ROUTES

let server: TestServer
let place: Place

beforeAll(async () => {
  server = await startServer()
  place = await makePlace()
}, 240_000)

afterAll(async () => server?.stop())

describe('the table', () => {
  it('has exactly the routes whose effect is governed', () => {
    const governed = (Object.keys(ROUTES) as RouteName[]).filter((name) => {
      const { effect } = table[name]
      return effect !== undefined && isGoverned(effect)
    })
    expect(names.toSorted()).toEqual(governed.toSorted())
  })

  it('leaves out no point that a caller can reach', () => {
    const reached = new Set(names.map((name) => table[name].effect))
    const governed = (Object.keys(POINTS) as Point[]).filter(isGoverned)
    // Programs inside reach them by their doors: `sandbox-asks.test.ts`, `egress.test.ts`, `test/tools/tools.test.ts`, and `model-calls.test.ts` of the control plane. A try of a job
    // begins long after its call: `test/jobs/jobs.test.ts`.
    expect(governed.filter((point) => !reached.has(point))).toEqual([
      'sandbox.ask',
      'job.start',
      'model.call',
      'network.connect',
      'tool.call',
    ])
  })
})

describe('a policy that denies it', () => {
  it.each(names)('%s answers which rule, and its effect is absent until the rule is off', async (name) => {
    const point = table[name].effect
    const { look = async () => undefined, answers: expected = 200 } = GUARDED[name]
    const before = await look(place)
    await place.admin.policies.put(denying(point ?? 'audit.read'))
    const denied = await send(name)
    expect(denied).toMatchObject({
      status: 403,
      code: 'policy_denied',
      message: 'The rule house/never denies it: Tested.',
    })
    if (point !== 'command.run' && point !== 'file.list') expect(await look(place)).toEqual(before)
    await place.admin.policies.remove('house')
    expect(await look(place)).toEqual(before)
    expect(await recordsOf(denied.requestId)).toEqual([[point, 'denied', 'deny', 'policy_denied', ['house/never']]])
    const passed = await send(name)
    expect(passed.status).toBe(passed.status === 204 ? 204 : expected)
    if (GUARDED[name].look && expected === 200) await differs(look, before)
    // Where there is nothing, nothing is done.
    if (expected !== 404)
      expect(await recordsOf(passed.requestId)).toContainEqual([point, 'requested', 'allow', undefined, []])
  })
})

function denying(point: Point): PolicyDocumentInput {
  const rule = { id: 'never', effect: 'deny', risk: 'high', reason: 'Tested.' } as const
  return { name: 'house', rules: [{ kind: 'operation', match: { points: [point] }, ...rule }] }
}

async function differs(look: (of: Place) => Promise<unknown>, before: unknown): Promise<void> {
  const was = JSON.stringify(before)
  const changed = async () => (JSON.stringify(await look(place)) === was ? undefined : true)
  expect(await waitFor(changed, { signal: deadline(100_000), everyMs: 100 })).toBe(true)
}

/** What the evidence has of a request: its point and status, what was decided and by which rules. */
async function recordsOf(requestId: string): Promise<readonly unknown[]> {
  const read = async () => {
    const { items } = await place.admin.audit.events({ limit: 100 })
    const found = items.filter(({ payload }) => payload['requestId'] === requestId).toReversed()
    return found.length === 0 ? undefined : found
  }
  const records = await waitFor(read, { signal: deadline(100_000), everyMs: 50 })
  return records.map(({ point, status, decision, error }) => [
    point,
    status,
    decision?.effect,
    error?.code,
    decision?.rules.map(({ policy, rule }) => `${policy}/${rule}`),
  ])
}

interface Answer {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly requestId: string
}

async function send(name: GuardedRoute): Promise<Answer> {
  const { method, path, body: takes } = table[name]
  const { params = {}, query = {}, body, bytes } = GUARDED[name].ask(place)
  const url = new URL(
    path.replaceAll(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(params[param] ?? '')),
    server.url,
  )
  for (const [field, value] of Object.entries(query)) url.searchParams.set(field, value)
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${server.adminKey}`,
      ...(takes ? { 'content-type': 'application/json' } : {}),
    },
    ...(takes ? { body: JSON.stringify(body ?? {}) } : {}),
    ...(bytes === undefined ? {} : { body: bytes }),
  })
  const text = await response.text()
  const requestId = response.headers.get('x-request-id') ?? ''
  if (!text.startsWith('{"error"')) return { status: response.status, requestId }
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  return { status: response.status, code: error.code, message: error.message, requestId }
}

async function makePlace(): Promise<Place> {
  const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  const sandbox = await admin.sandboxes.create({ ttlMs: 3_600_000 })
  for (const file of ['there', 'movable', 'removable']) await sandbox.files.write(file, 'x')
  const listener = await sandbox.start({ shell: 'cat > /home/user/said' }, { stdin: 'open' })
  const sleeper = await sandbox.start(['sleep', '600'])
  const session = await admin.sessions.create({ sandbox: sandbox.id, runtime: 'bash' })
  const paused = await admin.sandboxes.create({ name: 'paused' })
  await paused.pause()
  await admin.templates.put('unbuilt', { packages: ['no-such-package-anywhere'] })
  await admin.agents.register('unapproved')
  await admin.agents.register('suspended', { approve: true })
  const used = await admin.sandboxes.create({ agent: 'suspended' })
  await used.terminate()
  await admin.agents.suspend('suspended')
  const { key } = await admin.keys.create({ name: 'old', role: 'developer' })
  const { id: artifact } = await admin.artifacts.upload('there', 'x')
  const link = (await admin.artifacts.link(artifact)).url.split('/').at(-1) ?? ''
  return { admin, sandbox, paused, session, listener, sleeper, key: key.id, artifact, link }
}
