import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { registerAgentBody } from '@airlock/contract'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { as, TestRegistry } from '../testing/registry.ts'

const DEFAULTS = {
  sandboxes: 5,
  memoryBytes: 2 ** 31,
  diskBytes: 2 ** 33,
  cpus: 2,
  computeSecondsPerDay: 172_800,
  dollarsPerDay: 10,
  modelCallsPerDay: 1000,
  modelTokensPerDay: 1_000_000,
}

let dir: string
let registry: TestRegistry
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-budgets-'))
  registry = await TestRegistry.open({ file: join(dir, 'airlock.db') })
  await registry.who.agents.register(as(), registerAgentBody.parse({ id: 'a' }))
  registry.story()
})
afterEach(async () => {
  await registry.store.close()
  rmSync(dir, { recursive: true, force: true })
})

it('keeps what was set, goes back to the defaults, and puts both on record', async () => {
  const { budgets } = registry.who
  const unused = { reserved: { sandboxes: 0, memoryBytes: 0, diskBytes: 0, cpus: 0 } }
  const spent = { spent: { day: '1970-01-01', computeSeconds: 0, dollars: 0, modelCalls: 0, modelTokens: 0 } }
  const whole = { tenant: 'acme', agent: 'a', ...unused, ...spent }
  expect(await budgets.ofAgent(as(), 'a')).toEqual({ ...whole, limits: DEFAULTS, set: [] })
  await budgets.setAgent(as(), 'a', { cpus: 8, sandboxes: 0 })
  await budgets.setAgent(as(), 'a', { dollarsPerDay: 0.5, sandboxes: null })
  const set = { limits: { ...DEFAULTS, cpus: 8, dollarsPerDay: 0.5 }, set: ['cpus', 'dollarsPerDay'] }
  expect(await budgets.ofAgent(as(), 'a')).toEqual({ ...whole, ...set })
  expect(registry.records.at(-1)).toMatchObject({
    point: 'budget.set',
    status: 'done',
    tenant: 'acme',
    agent: 'a',
    payload: { asked: { dollarsPerDay: 0.5, sandboxes: null }, limits: { cpus: 8, dollarsPerDay: 0.5 } },
  })
  expect(registry.story()).toEqual([
    'budget.set requested',
    'budget.set done',
    'budget.set requested',
    'budget.set done',
  ])
})

it('hides what is not yours, and lets nobody who is bound to an agent raise its budget', async () => {
  const { budgets } = registry.who
  const bound = as({ agents: ['a'] })
  await expect(budgets.ofAgent(as({ agents: ['b'] }), 'a')).rejects.toMatchObject({ code: 'agent_not_found' })
  await expect(budgets.ofAgent(as({ tenant: 'globex' }), 'a')).rejects.toMatchObject({ code: 'agent_not_found' })
  await expect(budgets.ofTenant(as({ tenant: 'globex' }), 'acme')).rejects.toMatchObject({ code: 'tenant_not_found' })
  await expect(budgets.ofTenant(bound, 'acme')).rejects.toMatchObject({ code: 'forbidden' })
  await expect(budgets.setAgent(bound, 'a', { cpus: 64 })).rejects.toMatchObject({ code: 'forbidden' })
  expect(registry.story()).toEqual(['budget.set denied'])
  expect((await budgets.ofAgent(bound, 'a')).limits).toEqual(DEFAULTS)
})

it('is set for a tenant by the platform, in the evidence of that tenant', async () => {
  const platform = as({ tenant: 'globex', platform: true })
  const { limits, agent } = await registry.who.budgets.setTenant(platform, 'acme', { sandboxes: 3 })
  expect([agent, limits.sandboxes, limits.cpus]).toEqual([null, 3, 20])
  expect(registry.records.map((record) => record.tenant)).toEqual(['acme', 'acme'])
})
