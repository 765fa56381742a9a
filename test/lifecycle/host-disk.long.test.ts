import { createHash, randomBytes } from 'node:crypto'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { makeSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { Receiver } from '../support/webhook-receiver.ts'

const MIB = 1024 * 1024
const RESERVE_MB = 64
/** Until the disk, or the host, takes no more. */
const FILL = ['sh', '-c', 'head -c 1073741824 /dev/zero >/workspace/all; sync /workspace/all']
const CONTENT = randomBytes(8 * MIB)

interface TestNode {
  readonly disk: SmallDisk
  readonly server: TestServer
  readonly admin: Airlock
  readonly acme: Airlock
  readonly globex: Airlock
}

describe('a host that promises no more disk than it has', requires('root'), () => {
  let node: TestNode
  const receiver = new Receiver()
  beforeAll(async () => {
    node = await startNode(512, { AIRLOCK_OVERSUBSCRIBE_DISK: '1', AIRLOCK_WEBHOOK_PRIVATE: 'true' })
  }, 240_000)
  afterAll(async () => {
    await receiver.close()
    await stopNode(node)
  })

  it('refuses what a budget does not allow and what the host does not have, and counts the growth of disks', async () => {
    const { admin, acme } = node
    await admin.agents.register('small', { approve: true })
    await admin.budgets.setAgent('small', { diskBytes: 48 * MIB })
    expect(await refusal(create(acme, 64, 'small'))).toEqual({
      code: 'budget_exhausted',
      message: 'The agent small may use 48 MiB of disk: 0 B are taken, and 64 MiB more were asked for.',
    })
    expect(await refusal(create(acme, 10 * 1024))).toEqual({
      code: 'capacity_exhausted',
      message: 'The node has less disk than that in all.',
    })
    const sandbox = await create(acme, 32, 'small')
    expect((await admin.budgets.ofAgent('small')).reserved.diskBytes).toBe(32 * MIB)
    expect(await refusal(sandbox.setLimits({ diskBytes: 64 * MIB }))).toMatchObject({ code: 'budget_exhausted' })
    await sandbox.terminate()
    expect((await admin.budgets.ofAgent('small')).reserved.diskBytes).toBe(0)
  })

  it('lets one tenant fill its disk, and nobody else notices', async () => {
    const { acme, globex, disk, server } = node
    const before = await disk.freeMb()
    const greedy = await create(acme, 192)
    expect(before - (await disk.freeMb())).toBeGreaterThanOrEqual(180)
    // The write is refused, and what was written before is on the disk.
    expect((await greedy.run(FILL)).stderr).toMatch(/^head: .*No space left on device\n$/u)
    const room = (await disk.freeMb()) - RESERVE_MB
    expect(await refusal(create(acme, room + 16))).toMatchObject({ code: 'capacity_exhausted' })
    const other = await create(globex, 32)
    await other.files.write('/workspace/upload', CONTENT)
    expect((await other.run(['sha256sum', '/workspace/upload'])).stdout).toContain(sha256(CONTENT))
    expect(await ready(server)).toEqual([200, undefined])
    await Promise.all([greedy, other].map(async (one) => one.terminate()))
    await waitFor(async () => ((await disk.freeMb()) >= before - 8 ? true : undefined), {
      signal: deadline(100_000),
      everyMs: 100,
    })
  })

  it('says when only the reserve is left, starts nothing that needs it, and goes on with the rest', async () => {
    const { acme, admin, disk, server } = node
    await admin.webhooks.create({ url: await receiver.listen(), events: ['alert'] })
    const sandbox = await create(acme, 32)
    await disk.fill((await disk.freeMb()) - RESERVE_MB + 8)
    await readyBecomes(server, [503, 'host_disk_full'])
    expect(await refusal(create(acme, 16))).toMatchObject({ code: 'host_disk_full' })
    await sandbox.files.write('/workspace/upload', CONTENT)
    expect((await sandbox.run(['sha256sum', '/workspace/upload'])).stdout).toContain(sha256(CONTENT))
    expect(await sandbox.files.read('/workspace/upload')).toEqual(new Uint8Array(CONTENT))

    await disk.fill(0)
    await disk.fill((await disk.freeMb()) - RESERVE_MB / 4)
    expect(await refusal(sandbox.run(['true']))).toMatchObject({ code: 'host_disk_full' })
    await sandbox.terminate()
    expect((await admin.audit.events({ sandbox: sandbox.id, point: 'sandbox.terminate' })).items.length).toBe(2)

    const [raised] = await receiver.has(1)
    expect(JSON.parse(raised?.body ?? '')).toMatchObject({
      event: 'alert',
      data: { change: 'raised', resource: 'host_disk', level: 'critical' },
    })
    await disk.fill(0)
    await readyBecomes(server, [200, undefined])
    await disk.fill((await disk.freeMb()) - RESERVE_MB - 4)
    await readyBecomes(server, [200, 'host_disk_low'])
    await disk.fill(0)
  })
})

describe('a host that promises more disk than it has', requires('root'), () => {
  let node: TestNode
  beforeAll(async () => {
    node = await startNode(320, { AIRLOCK_OVERSUBSCRIBE_DISK: '20', AIRLOCK_DISK_RESERVE_MB: '16' })
  }, 240_000)
  afterAll(async () => stopNode(node))

  it('never says that something was written which is not there, and still ends what fills it', async () => {
    const { acme, globex, disk } = node
    const [greedy, other] = [await create(acme, 1024), await create(globex, 64)]
    const filled = await greedy.run(FILL)
    // The kernel took the bytes, and lost them. fsync is the call that tells.
    expect(filled.exitCode).not.toBe(0)
    expect(filled.stderr).toMatch(/^sync: .*(?:No space left on device|Input\/output error)$/mu)
    expect(await disk.freeMb()).toBeLessThan(16)
    const said = await other.files.write('/workspace/upload', CONTENT).then(
      () => 'written',
      (error: { code: string }) => error.code,
    )
    // Where there is no room for evidence either, it was not even begun.
    expect(['disk_failed', 'evidence_unavailable', 'store_unavailable']).toContain(said)
    expect(await refusal(create(globex, 16))).toMatchObject({
      code: expect.stringMatching(/^(?:host_disk_full|store_unavailable|evidence_unavailable)$/u),
    })
    await greedy.terminate().catch(() => undefined)
    await expect.poll(() => node.server.processesOf(greedy.id), { timeout: 100_000 }).toEqual([])
    await expect.poll(async () => disk.freeMb(), { timeout: 100_000 }).toBeGreaterThan(100)
    await readyBecomes(node.server, [200, undefined])
    const after = await create(globex, 64)
    await after.files.write('/workspace/upload', CONTENT)
    expect((await after.run(['sha256sum', '/workspace/upload'])).stdout).toContain(sha256(CONTENT))
  })
})

async function startNode(mb: number, env: Readonly<Record<string, string>>): Promise<TestNode> {
  const disk = await makeSmallDisk(mb)
  const settings = {
    AIRLOCK_DISK_RESERVE_MB: String(RESERVE_MB),
    AIRLOCK_MONITOR_EVERY_S: '1',
    AIRLOCK_MONITOR_KILL: 'none',
  }
  const server = await startServer({ home: disk.home, env: { ...settings, ...env } })
  const connect = (apiKey: string) => new Airlock({ url: server.url, apiKey })
  const admin = connect(server.adminKey)
  await admin.tenants.create('globex')
  const { secret } = await admin.keys.create({ name: 'developer', role: 'developer', tenant: 'globex' })
  return { disk, server, admin, acme: connect(server.developerKey), globex: connect(secret) }
}

async function stopNode(node: TestNode | undefined): Promise<void> {
  await node?.server.stop()
  await node?.disk.remove()
}

async function create(by: Airlock, diskMb: number, agent = 'default') {
  return by.sandboxes.create({ agent, limits: { diskBytes: diskMb * MIB } })
}

async function refusal(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'done',
    ({ code, message }: { code: string; message: string }) => ({ code, message }),
  )
}

async function ready(server: TestServer): Promise<readonly unknown[]> {
  const response = await fetch(`${server.url}/readyz`)
  const body = (await response.json()) as { warnings?: readonly string[]; error?: { message: string } }
  return [response.status, body.error?.message ?? body.warnings?.[0]]
}

/** It is looked at once a second. */
async function readyBecomes(server: TestServer, expected: readonly unknown[]): Promise<void> {
  await expect.poll(async () => ready(server), { timeout: 100_000 }).toEqual(expected)
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
