import { Airlock, type ErrorCode } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { finalLeftovers, startServer, type TestServer } from '../support/server.ts'

const STALE_S = 12

let server: TestServer
let admin: Airlock
let developer: Airlock

beforeAll(async () => {
  server = await startServer({ env: { AIRLOCK_AGENT_STALE_S: String(STALE_S) } })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  developer = new Airlock({ url: server.url, apiKey: server.developerKey })
}, 240_000)
afterAll(async () => server?.stop())

const refused = async (work: Promise<unknown>): Promise<ErrorCode | undefined> =>
  work.then(
    () => undefined,
    (error: { code: ErrorCode }) => error.code,
  )

describe('an agent through the running product', () => {
  it('goes from nobody to a sandbox and back: not there, not approved, connected, idle', async () => {
    expect(await refused(developer.sandboxes.create({ agent: 'walker' }))).toBe('agent_not_found')
    await developer.agents.register('walker', { version: '1.0', labels: { team: 'x' }, metadata: { repo: ['a'] } })
    expect(await refused(developer.sandboxes.create({ agent: 'walker' }))).toBe('agent_not_approved')
    expect(await refused(developer.agents.approve('walker'))).toBe('forbidden')
    await admin.agents.approve('walker', { expectedGeneration: 0 })
    const sandbox = await developer.sandboxes.create({ agent: 'walker' })
    expect(sandbox.data).toMatchObject({ agent: 'walker', generation: 1 })
    expect(await developer.agents.get('walker')).toMatchObject({ state: 'connected', generation: 1 })
    await sandbox.terminate()
    expect(await developer.agents.get('walker')).toMatchObject({ state: 'idle', generation: 1 })
    const { items } = await admin.audit.events({ agent: 'walker', limit: 100 })
    expect(items.filter((record) => record.status === 'denied').map((record) => record.error?.code)).toEqual([
      'agent_not_approved',
      'agent_not_found',
    ])
    const made = items.find((record) => record.point === 'sandbox.create' && record.status === 'done')
    expect(made?.payload['agent']).toEqual({
      state: 'connected',
      generation: 1,
      approved: true,
      version: '1.0',
      labels: { team: 'x' },
    })
  })

  it.each([
    ['suspend', 'agent_suspended', 'agent_suspended'],
    ['revoke', 'agent_revoked', 'agent_not_approved'],
    ['remove', 'agent_deleted', 'agent_not_found'],
  ] as const)('%s ends its processes for good, and it does not come back by itself', async (verb, reason, code) => {
    const id = `ended-by-${verb}`
    await admin.agents.register(id, { approve: true })
    const { secret } = await admin.keys.create({ name: id, role: 'developer', agents: [id] })
    const itself = new Airlock({ url: server.url, apiKey: secret })
    const [box, other] = [await itself.sandboxes.create({ agent: id }), await developer.sandboxes.create()]
    await box.start(['sleep', '600'])
    await admin.agents[verb](id)
    expect(server.processesOf(box.id)).toEqual([])
    expect((await developer.sandboxes.get(box.id)).data).toMatchObject({ state: 'stopped', endReason: reason })
    expect((await developer.sandboxes.get(other.id)).data.state).toBe('active')
    expect(await refused(itself.sandboxes.create({ agent: id }))).toBe(code)
    expect(await refused(itself.agents.resume(id))).toBe('forbidden')
    expect(await refused(itself.agents.approve(id))).toBe('forbidden')
    expect(await refused(itself.sandboxes.create({ agent: id }))).toBe(code)
    await other.terminate()
  })

  it('a key that is revoked while its sandbox lives is over with the next call', async () => {
    const { key, secret } = await admin.keys.create({ name: 'short', role: 'developer' })
    const mine = new Airlock({ url: server.url, apiKey: secret })
    const sandbox = await mine.sandboxes.create()
    await admin.keys.revoke(key.id)
    expect(await refused(mine.sandboxes.get(sandbox.id))).toBe('unauthenticated')
    await (await admin.sandboxes.get(sandbox.id)).terminate()
  })

  it('of which nothing is heard ends; one with a running command, and default, do not', async () => {
    for (const id of ['silent', 'busy']) await admin.agents.register(id, { approve: true })
    const silent = await developer.sandboxes.create({ agent: 'silent' })
    const busy = await developer.sandboxes.create({ agent: 'busy' })
    const plain = await developer.sandboxes.create()
    await busy.start(['sleep', '600'])
    const state = async (id: string) => (await developer.sandboxes.get(id)).data
    await waitFor(async () => ((await state(silent.id)).state === 'stopped' ? true : undefined), {
      signal: deadline(90_000),
      everyMs: 200,
    })
    expect(await state(silent.id)).toMatchObject({ endReason: 'agent_stale' })
    expect(await developer.agents.get('silent')).toMatchObject({ state: 'idle', approved: true })
    for (const { id } of [busy, plain]) expect((await state(id)).state).toBe('active')
    for (const one of [busy, plain]) await one.terminate()
  })

  it('leaves nothing on the host', async () => {
    expect(await finalLeftovers(server.home)).toEqual([])
  })
})
