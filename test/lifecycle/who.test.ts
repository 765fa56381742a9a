import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Airlock, type CreateOptions } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { finalLeftovers, leftovers, startServer, type TestServer } from '../support/server.ts'

/** Small enough to be used up, unlike in other tests. */
const SMALL = { AIRLOCK_AGENT_SANDBOXES: '5', AIRLOCK_AGENT_MEMORY_MB: '2048', AIRLOCK_AGENT_CPUS: '2' }

/** crun, unless there is a file `broken` beside it: then it starts nothing. */
const RUNTIME = `#!/bin/sh
if [ -e "$(dirname "$0")/broken" ]; then
  case " $* " in *" run "* | *" create "*) echo "this runtime is broken" >&2; exit 1;; esac
fi
exec /usr/bin/crun "$@"
`

/** Every way in which a creation fails leaves the world as it was, and says why. */
describe('a sandbox that cannot be had', requires('root'), () => {
  let server: TestServer
  let tools: string
  let admin: Airlock
  let developer: Airlock
  let count = 0
  let agent: string

  beforeAll(async () => {
    tools = mkdtempSync(join(tmpdir(), 'airlock-runtime-'))
    chmodSync(tools, 0o755)
    writeFileSync(join(tools, 'crun'), RUNTIME, { mode: 0o755 })
    server = await startServer({ env: { ...SMALL, AIRLOCK_RUNTIME: join(tools, 'crun') } })
    admin = connect(server.adminKey)
    developer = connect(server.developerKey)
  }, 240_000)
  afterAll(async () => {
    await server?.stop()
    rmSync(tools, { recursive: true, force: true })
  })
  beforeEach(async () => {
    agent = `agent-${++count}`
    await admin.agents.register(agent, { approve: true })
  })
  afterEach(() => rmSync(join(tools, 'broken'), { force: true }))

  const connect = (apiKey: string) => new Airlock({ url: server.url, apiKey })

  const world = async (of: string) => {
    const { state, generation, approved } = await admin.agents.get(of)
    const { reserved } = await admin.budgets.ofAgent(of)
    const { reserved: ofTenant } = await admin.budgets.ofTenant('default')
    return { state, generation, approved, reserved, ofTenant, host: await leftovers(server.home) }
  }

  /** Why the last creation for this agent did not happen, by the evidence. */
  const whyNot = async (of: string, by = admin) => {
    const look = async () => {
      const { items } = await by.audit.events({ agent: of, point: 'sandbox.create', limit: 10 })
      return items.find((record) => record.status === 'denied' || record.status === 'failed')
    }
    const found = await waitFor(look, { signal: deadline(100_000), everyMs: 50 })
    return [found.status, found.error?.code]
  }

  const refusal = async (by: Airlock, options: CreateOptions) =>
    by.sandboxes.create(options).then(
      (box) => `created ${box.id}`,
      (error: { code: string; status: number }) => [error.status, error.code],
    )

  /** Of an agent that called no model: calls, estimates, tokens and money. */
  const ZEROS = '0,0,0,0,0,0,0,0'
  const NOTHING = { sandboxes: 0, memoryBytes: 0, diskBytes: 0, cpus: 0 }

  it('because its agent is not there', async () => {
    expect(await refusal(developer, { agent: 'nobody' })).toEqual([404, 'agent_not_found'])
    expect(await whyNot('nobody')).toEqual(['denied', 'agent_not_found'])
    expect(await finalLeftovers(server.home)).toEqual([])
  })

  it.each([
    ['not approved', 'revoke', 'agent_not_approved'],
    ['suspended', 'suspend', 'agent_suspended'],
  ] as const)('because its agent is %s', async (_state, verb, code) => {
    // Only who was connected once can be suspended.
    await (await developer.sandboxes.create({ agent })).terminate()
    await admin.agents[verb](agent)
    const before = await world(agent)
    expect(await refusal(developer, { agent })).toEqual([403, code])
    expect(await whyNot(agent)).toEqual(['denied', code])
    expect(await world(agent)).toEqual(before)
  })

  it('because its agent is somebody else’s', async () => {
    const before = await world(agent)
    const { secret } = await admin.keys.create({ name: 'other', role: 'developer', agents: ['default'] })
    expect(await refusal(connect(secret), { agent })).toEqual([404, 'agent_not_found'])
    expect(await whyNot(agent)).toEqual(['denied', 'agent_not_found'])
    expect(await world(agent)).toEqual(before)
  })

  it('because its agent is of another tenant, whose evidence says nothing of it', async () => {
    const before = await world(agent)
    await admin.tenants.create('globex')
    const key = async (role: 'developer' | 'auditor') =>
      connect((await admin.keys.create({ name: role, role, tenant: 'globex' })).secret)
    expect(await refusal(await key('developer'), { agent })).toEqual([404, 'agent_not_found'])
    expect(await whyNot(agent, await key('auditor'))).toEqual(['denied', 'agent_not_found'])
    const { items } = await admin.audit.events({ agent, point: 'sandbox.create' })
    expect([items, await world(agent)]).toEqual([[], before])
  })

  it('because its budget does not reach, and that of its tenant neither', async () => {
    const before = await world(agent)
    expect(await refusal(developer, { agent, limits: { cpus: 2.5 } })).toEqual([402, 'budget_exhausted'])
    expect(await whyNot(agent)).toEqual(['denied', 'budget_exhausted'])
    await admin.budgets.setAgent(agent, { cpus: 100 })
    await admin.budgets.setTenant('default', { cpus: 1 })
    expect(await refusal(developer, { agent, limits: { cpus: 2 } })).toEqual([402, 'budget_exhausted'])
    await admin.budgets.setTenant('default', { cpus: null })
    expect(await world(agent)).toEqual(before)
  })

  it('because the host has not so much, whatever the budget says', async () => {
    const before = await world(agent)
    await admin.budgets.setAgent(agent, { cpus: 1_000_000 })
    await admin.budgets.setTenant('default', { cpus: 1_000_000 })
    expect(await refusal(developer, { agent, limits: { cpus: 256 } })).toEqual([503, 'capacity_exhausted'])
    expect(await whyNot(agent)).toEqual(['denied', 'capacity_exhausted'])
    await admin.budgets.setTenant('default', { cpus: null })
    expect(await world(agent)).toEqual(before)
  })

  it('because the backend fails after its budget was reserved', async () => {
    const before = await world(agent)
    expect(before.reserved).toEqual(NOTHING)
    writeFileSync(join(tools, 'broken'), '')
    expect(await refusal(developer, { agent })).toEqual([500, 'start_failed'])
    expect(await whyNot(agent)).toEqual(['failed', 'start_failed'])
    expect(await world(agent)).toEqual(before)
    rmSync(join(tools, 'broken'))
    await (await developer.sandboxes.create({ agent })).terminate()
  })

  it('because the store fails after it was started: its processes are gone again', async () => {
    const before = await world(agent)
    const store = new DatabaseSync(`${server.home}/control-plane/airlock.db`)
    store.exec('PRAGMA busy_timeout = 5000')
    store.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON sandboxes WHEN new.state = 'active' AND new.agent = '${agent}'
      BEGIN SELECT raise(ABORT, 'the store is broken'); END`)
    try {
      expect(await refusal(developer, { agent })).toEqual([500, 'internal'])
    } finally {
      store.exec('DROP TRIGGER refuse')
      store.close()
    }
    expect(await whyNot(agent)).toEqual(['failed', 'internal'])
    const told = async () =>
      (await admin.audit.events({ agent, limit: 20 })).items.map((record) => `${record.point} ${record.status}`)
    await expect.poll(told).toContain('isolation.start done')
    expect(await world(agent)).toEqual(before)
  })

  it('costs nothing; one that worked is in the ledger with what the kernel counted, and its budget is charged', async () => {
    const burn = 'import time\nwhile time.process_time() < 0.4: pass'
    const box = await developer.sandboxes.create({ agent })
    expect((await box.run(['python3', '-c', burn])).exitCode).toBe(0)
    await box.terminate()
    const { items } = await developer.usage.report({ agent })
    const [row] = items
    expect(items).toEqual([{ ...row, tenant: 'default', agent, sandboxes: 1, dollars: 0 }])
    expect(row?.cpuSeconds).toBeGreaterThanOrEqual(0.4)
    expect(row?.computeSeconds).toBe(row?.cpuSeconds)
    const { spent } = await developer.budgets.ofAgent(agent)
    expect(spent).toEqual({
      day: row?.day,
      computeSeconds: row?.computeSeconds,
      dollars: 0,
      modelCalls: 0,
      modelTokens: 0,
    })
    expect((await developer.usage.csv({ agent })).split('\r\n')).toEqual([
      'day,tenant,agent,sandbox,model,sandboxes,wallSeconds,cpuSeconds,computeSeconds,calls,estimatedCalls,' +
        'inputTokens,outputTokens,cacheReadTokens,cacheWriteTokens,microDollars,dollars',
      [row?.day, 'default', agent, '', '', 1, row?.wallSeconds, row?.cpuSeconds, row?.computeSeconds, ZEROS].join(','),
      '',
    ])
    await admin.budgets.setAgent(agent, { computeSecondsPerDay: 0 })
    expect(await refusal(developer, { agent })).toEqual([402, 'budget_exhausted'])
  })

  it('by all of those who want the last place at the same time, but one', async () => {
    await admin.budgets.setAgent(agent, { sandboxes: 1 })
    const before = await world(agent)
    const answers = await Promise.all(Array.from({ length: 4 }, () => refusal(developer, { agent })))
    const refused = answers.filter((answer) => typeof answer !== 'string')
    expect(refused).toEqual(Array.from({ length: 3 }, () => [402, 'budget_exhausted']))
    const { items } = await developer.sandboxes.list({ agent })
    const { memoryBytes, diskBytes, cpus } = items[0]?.data.limits ?? NOTHING
    expect([items.length, (await world(agent)).reserved]).toEqual([1, { sandboxes: 1, memoryBytes, diskBytes, cpus }])
    await items[0]?.terminate()
    expect(await world(agent)).toEqual({ ...before, state: 'idle', generation: 1 })
  })
})
