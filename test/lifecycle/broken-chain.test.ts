import { verifyExport } from '@airlock/audit'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exported } from '../support/exported.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

const TENANTS = Array.from({ length: 99 }, (_, n) => `t${n + 1}`)
const BROKEN = 't5'
const POWERLESS = 't6'

describe('a server with one broken chain among a hundred', requires('root', 'crun'), () => {
  let home: string
  let server: TestServer
  const keys = new Map<string, string>()
  let living: Sandbox
  let ofBroken: Sandbox

  const as = (tenant: string): Airlock =>
    new Airlock({ url: server.url, apiKey: tenant === 'default' ? server.adminKey : (keys.get(tenant) ?? '') })
  const chainOf = (tenant: string): string => {
    const dir = join(home, 'recorder/chains', tenant)
    return join(dir, readdirSync(dir).find((name) => name.endsWith('.ndjson')) ?? '')
  }

  beforeAll(async () => {
    server = await startServer()
    home = server.home
    const admin = as('default')
    for (const tenant of TENANTS) {
      await admin.tenants.create(tenant)
      keys.set(tenant, (await admin.keys.create({ name: 'admin', role: 'admin', tenant })).secret)
    }
    living = await admin.sandboxes.create({})
    ofBroken = await as(BROKEN).sandboxes.create({})
    // Sandboxes live on.
    await server.stop('SIGTERM')
    const lines = readFileSync(chainOf(BROKEN), 'utf8').trimEnd().split('\n')
    const last = lines.findLastIndex((line) => line.includes('"mac"'))
    // Only the store knows of it now.
    rmSync(join(chainOf(BROKEN), '../head.json'))
    writeFileSync(chainOf(BROKEN), `${lines.slice(0, last).join('\n')}\n${'\0'.repeat(200)}\n`)
    appendFileSync(chainOf(POWERLESS), `${'\0'.repeat(4096)}\n`)
    server = await startServer({ home })
  }, 240_000)
  afterAll(async () => {
    await server?.stop('SIGINT')
    rmSync(home, { recursive: true, force: true })
  })

  it('starts, says that it is ready and that a chain is broken, and adopts what lives', async () => {
    expect(await (await fetch(`${server.url}/readyz`)).json()).toEqual({
      status: 'ready',
      warnings: ['evidence_broken'],
    })
    const again = await as('default').sandboxes.get(living.id)
    expect(await again.run(['echo', 'here'])).toMatchObject({ stdout: 'here\n' })
    expect(server.logs()).toContain('the evidence of a tenant is broken')
  })

  it('grants nothing to the tenant whose chain is broken, and says what to type', async () => {
    await expect(as(BROKEN).sandboxes.create({})).rejects.toMatchObject({
      code: 'evidence_broken',
      hint: expect.stringContaining('airlock audit quarantine'),
    })
  })

  it('lets that tenant read its evidence up to the break, and ends what it has', async () => {
    expect((await as(BROKEN).audit.events()).items.map(({ point }) => point)).toContain('sandbox.create')
    const { lines } = await exported(as(BROKEN))
    const publicKey = readFileSync(join(home, 'public/audit.pub'), 'utf8')
    expect(await verifyExport(lines, { publicKey })).toMatchObject({
      ok: false,
      reason: expect.stringContaining('the server signed that the chain does not verify beyond'),
    })
    const sandbox = await as(BROKEN).sandboxes.get(ofBroken.id)
    await sandbox.terminate()
    expect(server.processesOf(ofBroken.id)).toEqual([])
  })

  it('cuts off what a loss of power left behind another chain, records that, and goes on', async () => {
    const sandbox = await as(POWERLESS).sandboxes.create({})
    await sandbox.terminate()
    const { lines, records } = await exported(as(POWERLESS))
    expect(records.find(({ point }) => point === 'recorder.recover')).toMatchObject({ payload: { tornBytes: 4097 } })
    const publicKey = readFileSync(join(home, 'public/audit.pub'), 'utf8')
    expect(await verifyExport(lines, { publicKey })).toMatchObject({ ok: true })
  })

  it('sets the broken part aside by "airlock audit quarantine", and goes on behind a signed statement of that', async () => {
    const env = { PATH: process.env['PATH'], AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.adminKey }
    const quarantine = async () => new CliProcess(['audit', 'quarantine', BROKEN], { env }).ended
    expect(await quarantine()).toMatchObject({ code: 0, stderr: expect.stringContaining('Set 201 bytes aside') })
    await (await as(BROKEN).sandboxes.create({})).terminate()
    expect(await (await fetch(`${server.url}/readyz`)).json()).toEqual({ status: 'ready' })
    // What was ended meanwhile is recorded now.
    const ends = async () => (await as(BROKEN).audit.events({ sandbox: ofBroken.id, point: 'sandbox.terminate' })).items
    await expect.poll(async () => (await ends()).map(({ status }) => status), { timeout: 100_000 }).toContain('done')
    const publicKey = readFileSync(join(home, 'public/audit.pub'), 'utf8')
    const { lines, records } = await exported(as(BROKEN))
    const verdict = await verifyExport(lines, { publicKey })
    expect(verdict).toMatchObject({ ok: true, isWhole: true, quarantined: [{ quarantined: { bytes: 201 } }] })
    expect(records.find(({ point }) => point === 'audit.quarantine')).toMatchObject({ payload: { bytes: 201 } })
    expect(readdirSync(join(chainOf(BROKEN), '..')).filter((name) => name.includes('.quarantined-'))).toHaveLength(1)
    expect(await quarantine()).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing to set aside') })
  })
})
