import { Airlock, type KillReport, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { leftovers, startServer, type TestServer } from '../support/server.ts'

const COUNT = 50
const MIB = 1024 * 1024
/** One agent has them all. */
const ROOM = { AIRLOCK_CAPACITY: '60', AIRLOCK_OVERSUBSCRIBE_MEMORY: '10', AIRLOCK_OVERSUBSCRIBE_CPUS: '100' }
/** What a sandbox does that does not want to die. Each is started once in every sandbox. */
const MISCHIEF = [
  // A storm of forks.
  'trap "" TERM INT HUP; while :; do (sleep 0.05 &); sleep 0.01; done',
  'trap "" TERM INT HUP; while :; do :; done',
  // Its own session, its own group, no parent.
  'setsid sh -c "trap \\"\\" TERM; while :; do sleep 1; done" >/dev/null 2>&1 & sleep 3600',
]

/** Busy sandboxes of one agent; four at once are made. */
async function makeBusy(airlock: Airlock): Promise<readonly Sandbox[]> {
  const made: Sandbox[] = []
  let left = COUNT
  const make = async () => {
    while (left-- > 0) {
      const limits = { memoryBytes: 128 * MIB, cpus: 0.1, pids: 64, diskBytes: 16 * MIB }
      const sandbox = await airlock.sandboxes.create({ agent: 'swarm', ttlMs: 3_600_000, limits })
      made.push(sandbox)
      for (const shell of MISCHIEF) await sandbox.start({ shell }, { timeoutMs: 3_600_000 })
    }
  }
  await Promise.all(Array.from({ length: 4 }, make))
  return made
}

async function withSwarm(
  work: (of: { server: TestServer; admin: Airlock; swarm: readonly Sandbox[]; bystander: Sandbox }) => Promise<void>,
): Promise<void> {
  const server = await startServer({ env: ROOM })
  try {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    await admin.agents.register('swarm', { approve: true })
    const bystander = await admin.sandboxes.create({ ttlMs: 3_600_000 })
    const swarm = await makeBusy(admin)
    await work({ server, admin, swarm, bystander })
    expect((await bystander.run(['echo', 'lives'])).stdout).toBe('lives\n')
  } finally {
    await server.stop('SIGINT')
  }
}

async function expectVerified(admin: Airlock): Promise<void> {
  const unverified = async () => (await admin.killswitch.list())[0]?.unverified
  await expect.poll(unverified, { timeout: 120_000, interval: 500 }).toEqual([])
}

/** Every process, in every group of every hierarchy, and every process of the host whose groups name the sandbox. */
async function expectGone(server: TestServer, swarm: readonly Sandbox[]): Promise<void> {
  const left = await leftovers(server.home)
  for (const { id } of swarm) {
    expect(server.processesOf(id)).toEqual([])
    expect(left.filter((found) => found.includes(id))).toEqual([])
  }
  const groups = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => readGroups(pid))
  expect(groups.filter((line) => swarm.some(({ id }) => line.includes(id)))).toEqual([])
}

function readGroups(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n')
  } catch {
    // It ended since it was listed.
    return []
  }
}

function summaryOf(what: string, report: KillReport): string {
  const processes = report.sandboxes.reduce((sum, one) => sum + (one.processes ?? 0), 0)
  const frozen = Math.max(...report.sandboxes.map(({ frozenMs }) => frozenMs ?? Infinity))
  const { length } = report.sandboxes
  return `${what}: ${length} sandboxes, ${processes} processes; frozen after ${frozen} ms, the slowest gone after ${report.slowestMs} ms`
}

describe('a kill of fifty busy sandboxes', () => {
  it('ends with every process seen gone', async () => {
    await withSwarm(async ({ server, admin, swarm }) => {
      const report = await admin.killswitch.on({ scope: 'agent', target: 'swarm', reason: 'drill' })
      console.log(summaryOf('kill', report))
      expect(report.sandboxes.map(({ id }) => id).toSorted()).toEqual(swarm.map(({ id }) => id).toSorted())
      expect(report).toMatchObject({ nodesDue: [], persisted: true, slowestMs: expect.any(Number) })
      // On a busy host some are verified by the sweep, after the answer.
      await expectVerified(admin)
      await expectGone(server, swarm)
      await expect(admin.sandboxes.create({ agent: 'swarm' })).rejects.toMatchObject({ code: 'killed' })
    })
  })

  it('ends the same when the data plane is killed in the middle', async () => {
    await withSwarm(async ({ server, admin, swarm }) => {
      const killing = admin.killswitch.on({ scope: 'agent', target: 'swarm', reason: 'drill' })
      // Some are gone, the others are not.
      const isMiddle = () => {
        const gone = swarm.filter(({ id }) => server.processesOf(id).length === 0).length
        return gone > 0 ? gone : undefined
      }
      const gone = await waitFor(isMiddle, { signal: deadline(60_000), everyMs: 5 })
      process.kill(dataPlaneOf(server), 'SIGKILL')
      expect(gone).toBeLessThan(COUNT)
      const report = await killing
      console.log(summaryOf(`kill with the data plane killed when ${gone} were gone`, report))
      // What it could not verify in time is ended by the sweep, and verified there.
      await expectVerified(admin)
      const ids = async () => (await admin.sandboxes.list({ agent: 'swarm' })).items.map(({ id }) => id)
      await expect.poll(ids, { timeout: 120_000, interval: 500 }).toEqual([])
      await expectGone(server, swarm)
      await expect(admin.sandboxes.create({ agent: 'swarm' })).rejects.toMatchObject({ code: 'killed' })
    })
  })
})

function dataPlaneOf({ pid }: TestServer): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
  const found = children.find((child) =>
    readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('dist/data-plane/main'),
  )
  if (found === undefined) throw new TypeError('the server has no data plane')
  return found
}
