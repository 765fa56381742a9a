import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { Airlock } from './index.ts'

let api: TestApi
let admin: Airlock
let developer: Airlock
beforeAll(async () => {
  api = await startTestApi()
  admin = new Airlock({ url: api.url, apiKey: KEYS.admin })
  developer = new Airlock({ url: api.url, apiKey: KEYS.developer })
})
afterAll(async () => api.close())

describe('agents', () => {
  it('are registered, listed, approved and deleted', async () => {
    const made = await developer.agents.register('coder', { labels: { a: 'b' }, metadata: { deep: [1, { x: null }] } })
    expect(made).toMatchObject({ id: 'coder', approved: false, metadata: { deep: [1, { x: null }] } })
    expect((await developer.agents.list({ labels: { a: 'b' }, approved: false })).items).toEqual([made])
    expect(await admin.agents.approve('coder', { expectedGeneration: 0 })).toMatchObject({ approved: true })
    expect((await developer.agents.list({ labels: { a: 'b' }, approved: false })).items).toEqual([])
    expect((await developer.agents.heartbeat('coder')).lastSeenAt).not.toBeNull()
    await expect(admin.agents.suspend('coder')).rejects.toMatchObject({ code: 'invalid_transition' })
    await expect(admin.agents.remove('coder', { expectedGeneration: 9 })).rejects.toMatchObject({
      code: 'stale_generation',
    })
    await admin.agents.remove('coder')
    await expect(developer.agents.get('coder')).rejects.toMatchObject({ code: 'agent_not_found' })
  })

  it('are suspended and resumed', async () => {
    expect(await admin.agents.suspend('default')).toMatchObject({ state: 'suspended', generation: 0 })
    await expect(developer.agents.heartbeat('default')).rejects.toMatchObject({ code: 'agent_suspended' })
    expect(await admin.agents.resume('default')).toMatchObject({ state: 'idle', generation: 1 })
    expect(await admin.agents.update('default', { version: '2' })).toMatchObject({ version: '2', approved: true })
    expect(await admin.agents.revoke('default')).toMatchObject({ approved: false })
  })
})

describe('keys and tenants', () => {
  it('are made for another tenant by the platform', async () => {
    expect(await admin.tenants.create('acme')).toMatchObject({ id: 'acme' })
    expect((await admin.tenants.list({ limit: 1 })).nextCursor).toBe('acme')
    expect(await admin.tenants.get('acme')).toMatchObject({ id: 'acme' })
    const { key, secret } = await admin.keys.create({ name: 'first', role: 'admin', tenant: 'acme' })
    expect(secret).toContain(`al_${key.id}_`)
    const next = await admin.keys.rotate(key.id, { overlapMs: 0 })
    expect((await admin.keys.list({ tenant: 'acme' })).items.map((one) => one.id)).toEqual([next.key.id])
    expect(await admin.keys.revoke(next.key.id)).toMatchObject({ revokedAt: expect.any(String) })
    expect(await admin.keys.get(next.key.id)).toMatchObject({ replaces: key.id })
    expect((await admin.keys.list({ tenant: 'acme', all: true })).items).toHaveLength(2)
    await expect(developer.keys.list()).rejects.toMatchObject({ code: 'forbidden' })
    await expect(admin.tenants.create('system')).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
