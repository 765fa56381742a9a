import { Airlock, AirlockError, type KillReport, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { leftovers, startServer, type TestServer } from '../support/server.ts'

const run = promisify(execFile)

let server: TestServer
/** The key of the platform; `acme` and `globex` are admins of tenants. */
let platform: Airlock
let acme: Airlock
let globex: Airlock
let keys: { readonly acme: string; readonly globex: string }

beforeAll(async () => {
  server = await startServer()
  connect()
  for (const tenant of ['acme', 'globex']) await platform.tenants.create(tenant)
  const key = async (tenant: string) => (await platform.keys.create({ name: 'admin', role: 'admin', tenant })).secret
  keys = { acme: await key('acme'), globex: await key('globex') }
  connect()
})
afterAll(async () => {
  await server?.stop()
})

function connect(): void {
  const as = (apiKey: string) => new Airlock({ url: server.url, apiKey })
  platform = as(server.adminKey)
  acme = as(keys?.acme ?? server.adminKey)
  globex = as(keys?.globex ?? server.adminKey)
}

const KILLED = { code: 'killed', status: 423 }

/** One that is busy, and obeys no signal that can be ignored. */
async function busy(airlock: Airlock, agent = 'default'): Promise<Sandbox> {
  const sandbox = await airlock.sandboxes.create({ agent })
  await sandbox.start({ shell: 'trap "" TERM INT HUP; while :; do :; done' })
  return sandbox
}

async function agentOf(airlock: Airlock, id: string): Promise<string> {
  await airlock.agents.register(id, { approve: true })
  return id
}

async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => (error instanceof AirlockError ? error.code : String(error)),
  )
}

const idsOf = (report: KillReport) => report.sandboxes.map(({ id }) => id).toSorted()

/** Gone for the API, for the kernel, and in the report. */
async function expectGone(airlock: Airlock, report: KillReport, sandboxes: readonly Sandbox[]): Promise<void> {
  expect(idsOf(report)).toEqual(sandboxes.map(({ id }) => id).toSorted())
  expect(report).toMatchObject({ unverified: [], nodesDue: [], persisted: true, liftedAt: null })
  for (const one of report.sandboxes)
    expect(one).toEqual({
      id: one.id,
      node: expect.any(String),
      frozenMs: expect.any(Number),
      goneMs: expect.any(Number),
      processes: expect.any(Number),
      verified: true,
    })
  for (const { id } of sandboxes) {
    expect(server.processesOf(id)).toEqual([])
    expect((await airlock.sandboxes.get(id)).data).toMatchObject({ state: 'stopped', endReason: 'killed' })
  }
}

describe('a killswitch', () => {
  it('of a sandbox ends that one, and leaves its neighbours alone', async () => {
    const [victim, neighbour] = [await busy(acme), await busy(acme)]
    const report = await acme.killswitch.on({ scope: 'sandbox', target: victim.id, reason: 'it looks odd' })
    expect(report).toMatchObject({ scope: 'sandbox', target: victim.id, tenant: 'acme', reason: 'it looks odd' })
    await expectGone(acme, report, [victim])
    expect(await codeOf(victim.run(['true']))).toBe('sandbox_ended')
    expect((await neighbour.run(['echo', 'lives'])).stdout).toBe('lives\n')
    await neighbour.terminate()
    // It is over with its sandbox, which never comes back.
    await expect.poll(async () => acme.killswitch.list(), { timeout: 100_000 }).toEqual([])
    expect(await acme.killswitch.list({ all: true })).toMatchObject([{ id: report.id, liftedBy: 'system' }])
  })

  it('of an agent ends all of its sandboxes and grants it nothing until it is lifted', async () => {
    const agent = await agentOf(acme, 'rogue')
    const mine = [await busy(acme, agent), await busy(acme, agent)]
    const session = await acme.sessions.create({ sandbox: mine[0]?.id ?? '', runtime: 'bash' })
    const other = await busy(acme)
    await mine[1]?.pause()
    const report = await acme.killswitch.on({ scope: 'agent', target: agent })
    await expectGone(acme, report, mine)
    await expect(acme.sandboxes.create({ agent })).rejects.toMatchObject(KILLED)
    await expect(acme.sandboxes.getOrCreate('box', { agent })).rejects.toMatchObject(KILLED)
    await expect(acme.sessions.create({ create: { agent }, runtime: 'bash' })).rejects.toMatchObject(KILLED)
    await expect(acme.agents.approve(agent)).rejects.toMatchObject(KILLED)
    await expect(platform.grants.add(agent, '/usr/share', { tenant: 'acme' })).rejects.toMatchObject(KILLED)
    expect(await codeOf(session.run('true'))).toBe('session_expired')
    expect((await other.run(['echo', 'lives'])).stdout).toBe('lives\n')

    const [on] = await acme.killswitch.list()
    expect(on).toEqual(report)
    const lifted = await acme.killswitch.lift({ scope: 'agent', target: agent })
    expect(lifted).toMatchObject({ id: report.id, liftedAt: expect.any(String), liftedBy: expect.any(String) })
    expect(await acme.killswitch.list()).toEqual([])
    expect(await codeOf(acme.killswitch.lift({ scope: 'agent', target: agent }))).toBe('kill_not_found')
    const back = await acme.sandboxes.create({ agent })
    expect((await back.run(['echo', 'back'])).stdout).toBe('back\n')
    for (const sandbox of [back, other]) await sandbox.terminate()
  })

  it('of a tenant ends all of it, hides it from others, and leaves them alone', async () => {
    const agent = await agentOf(acme, 'second')
    const mine = [await busy(acme), await busy(acme, agent)]
    const theirs = await busy(globex)
    const report = await acme.killswitch.on({ scope: 'tenant', reason: 'all of it' })
    expect(report).toMatchObject({ scope: 'tenant', tenant: 'acme', target: 'acme' })
    await expectGone(acme, report, mine)
    for (const who of [undefined, agent])
      await expect(acme.sandboxes.create(who === undefined ? {} : { agent: who })).rejects.toMatchObject(KILLED)
    await expect(acme.agents.register('third', { approve: true })).rejects.toMatchObject(KILLED)
    await expect(acme.keys.create({ name: 'more', role: 'admin' })).rejects.toMatchObject(KILLED)
    expect((await acme.audit.events({ point: 'kill.on' })).items.length).toBeGreaterThan(0)
    expect((await theirs.run(['echo', 'lives'])).stdout).toBe('lives\n')
    expect(await globex.killswitch.list({ all: true })).toEqual([])
    await acme.killswitch.lift({ scope: 'tenant' })
    const back = await acme.sandboxes.create()
    for (const sandbox of [back, theirs]) await sandbox.terminate()
  })

  it('of everything is the platform alone, and shows a tenant only what was its own', async () => {
    const [mine, theirs] = [await busy(acme), await busy(globex)]
    expect(await codeOf(acme.killswitch.on({ scope: 'all' }))).toBe('forbidden')
    expect((await mine.run(['echo', 'lives'])).stdout).toBe('lives\n')
    const report = await platform.killswitch.on({ scope: 'all', reason: 'drill' })
    expect(report).toMatchObject({ scope: 'all', tenant: null, target: null })
    expect(idsOf(report)).toEqual([mine.id, theirs.id].toSorted())
    for (const airlock of [acme, globex, platform])
      await expect(airlock.sandboxes.create()).rejects.toMatchObject(KILLED)
    expect((await leftovers(server.home)).filter((found) => found.includes('sbx_'))).toEqual([])
    const [seen] = await acme.killswitch.list()
    expect(seen && idsOf(seen)).toEqual([mine.id])
    expect(await codeOf(acme.killswitch.lift({ scope: 'all' }))).toBe('forbidden')
    await platform.killswitch.lift({ scope: 'all' })
    for (const airlock of [acme, globex]) await (await airlock.sandboxes.create()).terminate()
  })

  it('is not found for who it is not the tenant of, and has no effect', async () => {
    const theirs = await busy(globex)
    const agent = await agentOf(globex, 'hidden')
    const tries = [
      [{ scope: 'sandbox', target: theirs.id }, 'sandbox_not_found'],
      [{ scope: 'agent', target: agent }, 'agent_not_found'],
      [{ scope: 'agent', target: agent, tenant: 'globex' }, 'tenant_not_found'],
      [{ scope: 'tenant', target: 'globex' }, 'tenant_not_found'],
    ] as const
    for (const [what, code] of tries) {
      expect(await codeOf(acme.killswitch.on(what))).toBe(code)
      expect(await codeOf(acme.killswitch.lift(what))).toBe(code)
    }
    expect((await theirs.run(['echo', 'lives'])).stdout).toBe('lives\n')
    expect((await globex.killswitch.list({ all: true })).filter(({ scope }) => scope !== 'all')).toEqual([])
    const report = await platform.killswitch.on({ scope: 'agent', target: agent, tenant: 'globex' })
    expect(report).toMatchObject({ tenant: 'globex', target: agent, sandboxes: [] })
    await globex.killswitch.lift({ scope: 'agent', target: agent })
    await theirs.terminate()
  })

  it('is the same when it is turned on again, and ends what it finds again', async () => {
    const agent = await agentOf(acme, 'twice')
    const sandbox = await busy(acme, agent)
    const target = { scope: 'agent', target: agent } as const
    const [one, two] = await Promise.all([acme.killswitch.on(target), acme.killswitch.on(target)])
    expect(two.id).toBe(one.id)
    await expectGone(acme, one, [sandbox])
    expect(await acme.killswitch.on(target)).toMatchObject({ id: one.id, sandboxes: one.sandboxes })
    await acme.killswitch.lift(target)
  })

  it('breaks off what is being made', async () => {
    const agent = await agentOf(acme, 'hasty')
    const makes = Array.from({ length: 6 }, async () => codeOf(acme.sandboxes.create({ agent })))
    const isUnderWay = async () =>
      (await acme.sandboxes.list({ agent, state: 'creating' })).items.length > 0 || undefined
    await waitFor(isUnderWay, { signal: deadline(100_000), everyMs: 2 })
    const report = await acme.killswitch.on({ scope: 'agent', target: agent })
    await Promise.all(makes)
    expect(report.unverified).toEqual([])
    const { items } = await acme.sandboxes.list({ agent })
    await expect.poll(async () => (await acme.sandboxes.list({ agent })).items.length, { timeout: 100_000 }).toBe(0)
    for (const { id } of items) expect(server.processesOf(id)).toEqual([])
    expect((await leftovers(server.home)).filter((found) => found.includes('sbx_'))).toEqual([])
    await acme.killswitch.lift({ scope: 'agent', target: agent })
  })

  it('is in the evidence: who, why, what it ended, and who lifted it', async () => {
    const agent = await agentOf(acme, 'told')
    const sandbox = await busy(acme, agent)
    const { id } = await acme.killswitch.on({ scope: 'agent', target: agent, reason: 'told' })
    expect(await codeOf(acme.sandboxes.create({ agent }))).toBe('killed')
    await acme.killswitch.lift({ scope: 'agent', target: agent })
    const story = async () =>
      (await acme.audit.events({ agent, limit: 100 })).items
        .filter(({ point }) => point.startsWith('kill.') || point === 'sandbox.terminate' || point === 'sandbox.create')
        .map(({ point, status, error, payload }) => [
          point,
          status,
          error?.code ?? payload['kill'] ?? payload['reason'],
        ])
        .toReversed()
        .filter(([point, status]) => point !== 'sandbox.create' || status === 'denied')
    const told = [
      ['kill.on', 'requested', id],
      ['sandbox.terminate', 'requested', 'killed'],
      ['sandbox.terminate', 'done', 'killed'],
      ['kill.on', 'done', id],
      ['sandbox.create', 'denied', 'killed'],
      ['kill.lift', 'requested', id],
      ['kill.lift', 'done', id],
    ]
    await expect.poll(story, { timeout: 100_000 }).toEqual(told)
    expect(server.processesOf(sandbox.id)).toEqual([])
  })

  it('can be turned on, seen and lifted from the command line', async () => {
    const agent = await agentOf(acme, 'typed')
    const sandbox = await busy(acme, agent)
    const airlock = async (...argv: string[]) =>
      new CliProcess(argv, { env: { PATH: process.env['PATH'], AIRLOCK_URL: server.url, AIRLOCK_API_KEY: keys.acme } })
        .ended
    expect(await airlock('kill', '--agent', agent)).toMatchObject({ code: 2, stdout: '' })
    expect(await airlock('kill')).toMatchObject({ code: 2, stdout: '' })
    expect(await airlock('kill', '--all', '--yes')).toMatchObject({ code: 4, stdout: '' })
    expect((await sandbox.run(['echo', 'lives'])).stdout).toBe('lives\n')

    const killed = await airlock('kill', '--agent', agent, '--reason', 'typed', '--yes')
    expect(killed).toMatchObject({ code: 0, stderr: '' })
    expect(killed.stdout).toMatch(/^SANDBOX +NODE +PROCESSES +FROZEN +GONE +VERIFIED\n/)
    expect(killed.stdout).toMatch(new RegExp(`^${sandbox.id} .* ms +\\d+ ms +yes$`, 'm'))
    expect(killed.stdout).toMatch(/Killed agent typed: 1 of 1 seen gone, the slowest after \d+ ms[.]\n$/)
    expect((await airlock('kill', '--ls')).stdout).toMatch(/agent +typed .* 1 +0 +typed$/m)
    expect(await airlock('create', '--agent', agent)).toMatchObject({ code: 4 })
    expect(await airlock('kill', '--agent', agent, '--lift')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Lifted: agent typed.\n'),
    })
    expect(server.processesOf(sandbox.id)).toEqual([])
  })

  it('outlives the death of everything: who is killed stays dead', async () => {
    const agent = await agentOf(acme, 'undead')
    const sandbox = await busy(acme, agent)
    const { id } = await acme.killswitch.on({ scope: 'agent', target: agent })
    await killTree(server)
    server = await startServer({ home: server.home })
    connect()
    await expect(acme.sandboxes.create({ agent })).rejects.toMatchObject(KILLED)
    expect((await acme.killswitch.list()).map((kill) => kill.id)).toEqual([id])
    expect((await acme.sandboxes.get(sandbox.id)).data).toMatchObject({ state: 'stopped', endReason: 'killed' })
    expect(server.processesOf(sandbox.id)).toEqual([])
    await acme.killswitch.lift({ scope: 'agent', target: agent })
    await (await acme.sandboxes.create({ agent })).terminate()
  })
})

describe('on a full disk', () => {
  it('a killswitch kills all the same, holds, and is written when there is space again', async () => {
    const home = await mkdtemp(join(tmpdir(), 'al-full-'))
    await run('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=0711', 'airlock-full', home])
    await chmod(home, 0o711)
    let full = await startServer({ home, env: { AIRLOCK_DISK_RESERVE_MB: '0' } })
    try {
      let root = new Airlock({ url: full.url, apiKey: full.adminKey })
      const sandbox = await root.sandboxes.create({ limits: { diskBytes: 16 * 1024 * 1024 } })
      await sandbox.start({ shell: 'while :; do :; done' })
      const space = await statfs(home)
      await writeFile(join(home, 'filler'), Buffer.alloc(space.bavail * space.bsize)).catch(() => undefined)
      const report = await root.killswitch.on({ scope: 'agent', target: 'default' })
      expect(report).toMatchObject({
        persisted: false,
        unverified: [],
        sandboxes: [{ id: sandbox.id, verified: true }],
      })
      expect(full.processesOf(sandbox.id)).toEqual([])
      await expect(root.sandboxes.create()).rejects.toMatchObject(KILLED)

      // It holds over a crash, though the store never had it.
      await killTree(full)
      await rm(join(home, 'filler'))
      full = await startServer({ home, env: { AIRLOCK_DISK_RESERVE_MB: '0' } })
      root = new Airlock({ url: full.url, apiKey: full.adminKey })
      await expect(root.sandboxes.create()).rejects.toMatchObject(KILLED)
      await expect
        .poll(async () => root.killswitch.list(), { timeout: 100_000 })
        .toMatchObject([{ id: report.id, persisted: true }])
      await expect
        .poll(async () => (await root.sandboxes.get(sandbox.id)).data, { timeout: 100_000 })
        .toMatchObject({ state: 'stopped', endReason: 'killed' })
      await expect(root.sandboxes.create()).rejects.toMatchObject(KILLED)
    } finally {
      await full.stop('SIGINT')
      await run('umount', [home])
      await rm(home, { recursive: true, force: true })
    }
  })
})

/** SIGKILL for the supervisor and every process that it runs, as nearly at once as can be. */
async function killTree(of: TestServer): Promise<void> {
  const children = readFileSync(`/proc/${of.pid}/task/${of.pid}/children`, 'utf8').trim().split(' ').map(Number)
  for (const pid of [of.pid, ...children]) process.kill(pid, 'SIGKILL')
  await of.exited
}
