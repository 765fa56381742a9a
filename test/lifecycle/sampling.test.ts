import { nodeMetrics, type NodeSample } from '@airlock/contract'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { readdirSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askDataPlane } from '../support/data-plane-socket.ts'
import { pidOf } from '../support/pid-of.ts'
import { startServer, type TestServer } from '../support/server.ts'

const MIB = 1024 * 1024

let server: TestServer
let airlock: Airlock

beforeAll(async () => {
  server = await startServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
})
afterAll(async () => {
  await server?.stop()
})

describe('the samples of a data plane', () => {
  it('go on from where they were when it is killed and comes back', async () => {
    await using sandbox = await airlock.sandboxes.create()
    await sandbox.run({ shell: 'dd if=/dev/zero of=full bs=1M count=8 conv=fsync' })
    await sampleOf(sandbox)
    await sandbox.run({ shell: 'dd if=/dev/zero of=more bs=1M count=8 conv=fsync' })
    const before = await sampleOf(sandbox)
    expect(before.writtenBytes ?? 0).toBeGreaterThanOrEqual(8 * MIB)

    const killed = pidOf(server.home, 'data-plane')
    if (killed !== undefined) process.kill(killed, 'SIGKILL')
    const after = await waitFor(async () => {
      const pid = pidOf(server.home, 'data-plane')
      return pid === undefined || pid === killed ? undefined : await sampleOf(sandbox).catch(() => undefined)
    }, soon())

    expect({ diskBytes: after.diskBytes, inodes: after.inodes, readBytes: after.readBytes }).toEqual({
      diskBytes: before.diskBytes,
      inodes: before.inodes,
      readBytes: before.readBytes,
    })
    expect(after.writtenBytes ?? 0).toBeGreaterThanOrEqual(before.writtenBytes ?? 0)
    expect(after.cpuMs ?? 0).toBeGreaterThanOrEqual(before.cpuMs ?? 0)
  })

  it('are of what runs and what is paused, and hold nothing of what has ended', async () => {
    const sandboxes = [await airlock.sandboxes.create(), await airlock.sandboxes.create()]
    const [one, other] = sandboxes
    if (!one || !other) throw new TypeError('There is no sandbox.')
    await other.pause()
    const said = (await samples()).map(({ id }) => id)
    expect(said).toEqual(expect.arrayContaining([one.id, other.id]))
    expect(held(one.id)).not.toEqual([])
    await one.terminate()
    await other.terminate()
    expect((await samples()).filter(({ id }) => id === one.id || id === other.id)).toEqual([])
    expect([...held(one.id), ...held(other.id)]).toEqual([])
  })

  it('keep nothing open of twenty sandboxes that came and went', async () => {
    const comeAndGo = async () => {
      await using sandbox = await airlock.sandboxes.create()
      await sandbox.run(['true'])
      await sampleOf(sandbox)
    }
    // What is opened once and stays, is open from here on.
    await Promise.all(Array.from({ length: 4 }, comeAndGo))
    const before = await settled()
    for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 4 }, comeAndGo))
    await expect.poll(settled, { timeout: 60_000 }).toEqual(before)
  })
})

/** What the data plane has open when it has nothing to do, by kind: connections come and go. */
async function settled(): Promise<Readonly<Record<string, number>>> {
  await waitFor(async () => ((await samples()).length === 0 ? true : undefined), soon())
  const counts: Record<string, number> = {}
  for (const path of openFiles()) {
    const kind = path.startsWith('socket:') ? 'socket' : path.replace(/\[\d+\]$/u, '')
    if (kind !== 'socket') counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

async function samples(): Promise<readonly NodeSample[]> {
  const { json } = await askDataPlane(server.home, 'GET', '/metrics')
  return nodeMetrics.parse(json).samples
}

async function sampleOf(sandbox: Sandbox): Promise<NodeSample> {
  const found = (await samples()).find(({ id }) => id === sandbox.id)
  if (!found) throw new TypeError(`There is no sample of ${sandbox.id}.`)
  return found
}

/** Files of the groups of a sandbox that the data plane has open. */
function held(sandbox: string): readonly string[] {
  return openFiles().filter((path) => path.startsWith('/sys/fs/cgroup/') && path.includes(`/${sandbox}/`))
}

function openFiles(): readonly string[] {
  const fds = `/proc/${pidOf(server.home, 'data-plane')}/fd`
  return readdirSync(fds).flatMap((fd) => {
    try {
      return [readlinkSync(`${fds}/${fd}`)]
    } catch {
      // It was closed while we looked.
      return []
    }
  })
}

function soon(): { readonly signal: AbortSignal; readonly everyMs: number } {
  return { signal: deadline(100_000), everyMs: 100 }
}
