import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSandboxBody, DEFAULTS, type Principal } from '@airlock/contract'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defaultAgent } from '../identity/first-start.ts'
import { insertAgentIfAbsent, type StoredAgent } from '../store/agents.ts'
import { openStore, type Store } from '../store/engine/store.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { admit } from './admit.ts'

let dir: string
let store: Store
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-admit-'))
  store = await openStore({ file: join(dir, 'airlock.db') })
  await store.query((db) => insertTenantIfAbsent(db, { id: 'default', createdAt: 1 }))
})
afterEach(async () => {
  await store.close()
  rmSync(dir, { recursive: true, force: true })
})

const PRINCIPAL: Principal = { actor: 'key:x', tenant: 'default', role: 'developer', agents: null, platform: false }

async function ask(agent: Partial<StoredAgent>, principal: Partial<Principal> = {}, body: object = {}) {
  const row: StoredAgent = { ...defaultAgent('default', 1), id: 'a', generation: 4, ...agent }
  await store.query((db) => insertAgentIfAbsent(db, row))
  const asked = { ...createSandboxBody.parse(body), agent: 'a' }
  return store.query((db) => admit(db, { ...PRINCIPAL, ...principal }, asked))
}

describe('admission', () => {
  it('admits a live, approved agent that the caller may act for, with the defaults filled in', async () => {
    expect(await ask({}, { agents: ['a'] }, { limits: { pids: 20 } })).toEqual({
      agent: 'a',
      generation: 5,
      template: { name: 'base', source: 'host', spec: expect.any(Object), image: null },
      limits: {
        memoryBytes: DEFAULTS.memoryBytes.default,
        cpus: DEFAULTS.cpus.default,
        pids: 20,
        diskBytes: DEFAULTS.diskBytes.default,
        inodes: DEFAULTS.inodes.default,
        openFiles: DEFAULTS.openFiles.default,
        cpuSeconds: null,
      },
      env: {},
      doors: ['control'],
      models: [],
      modelLimits: { calls: null, tokens: null, dollars: null, concurrentCalls: 16 },
    })
  })

  it('keeps the generation of an agent that is connected', async () => {
    expect((await ask({ state: 'connected' })).generation).toBe(4)
  })

  it.each([
    ['is not one of the key', {}, { agents: [] }],
    ['is of another tenant', {}, { tenant: 'other' }],
    ['was deleted', { deletedAt: 2 }, {}],
  ] as const)('fails closed: an agent that %s is not found', async (_how, agent, principal) => {
    await expect(ask(agent, principal)).rejects.toMatchObject({ code: 'agent_not_found' })
  })

  it.each([
    ['is not approved', { approved: false }, 'agent_not_approved'],
    ['is suspended', { state: 'suspended' }, 'agent_suspended'],
  ] as const)('fails closed: an agent that %s says so', async (_how, agent, code) => {
    await expect(ask(agent)).rejects.toMatchObject({ code })
    await expect(ask(agent, { agents: ['b'] })).rejects.toMatchObject({ code: 'agent_not_found' })
  })

  it('refuses a template that is not there', async () => {
    await expect(ask({}, {}, { template: 'nothing' })).rejects.toMatchObject({ code: 'template_not_found' })
  })
})
