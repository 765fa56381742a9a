import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeMetrics } from '@airlock/contract'
import { Cleanup, newId, sleep } from '@airlock/std'
import { findGroups } from '../../packages/data-plane/src/isolation/backends/oci/groups/find-groups.ts'
import { Meters } from '../../packages/data-plane/src/isolation/backends/oci/meters.ts'
import { pathsOf } from '../../packages/data-plane/src/isolation/backends/oci/paths.ts'
import { pidOf } from '../../test/support/pid-of.ts'
import { type BenchServer, startServer } from '../server.ts'
import { quantile } from '../statistics.ts'
import type { Samples } from './race.ts'

const NAME = 'Airlock'
const EVERY_MS = 5_000
/** Rounds come faster than they do by default, so that a window has many of them; and as good as never. */
const OFTEN_S = 1
const SELDOM_S = 60
const WINDOW_MS = 20_000
const CREATED_AT_ONCE = 4
const CLOCK_TICK_MS = 10
const BARE_LIMITS = { memoryBytes: 64 * 1024 * 1024, pids: 64, cpus: 1 }

/** Room for as many as are measured. */
const ROOM = {
  AIRLOCK_CAPACITY: '1000',
  AIRLOCK_OVERSUBSCRIBE_MEMORY: '100',
  AIRLOCK_OVERSUBSCRIBE_CPUS: '1000',
  AIRLOCK_AGENT_SANDBOXES: '1000',
  AIRLOCK_AGENT_MEMORY_MB: '1000000',
  AIRLOCK_OVERSUBSCRIBE_DISK: '100',
  AIRLOCK_AGENT_DISK_MB: '1000000',
  AIRLOCK_AGENT_CPUS: '10000',
}

export interface MonitorPlan {
  readonly samples: Samples
  readonly sandboxes: number
  /** Groups with the layout of a sandbox and nobody in them, which are read as those of sandboxes are. */
  readonly bareGroups: number
  readonly windows: number
}

/**
 * The processor time of a round of the monitor: of both planes over real sandboxes, by a server that looks often less one
 * that does not; and of the reader over bare groups, in this process, with what it costs to hand its samples over.
 */
export async function measureMonitor(plan: MonitorPlan): Promise<void> {
  const { samples } = plan
  const often = await withServer(plan, OFTEN_S, async (server) => ({
    bareMs: await readBare(server, plan),
    planes: await watchPlanes(server, plan),
  }))
  const seldom = await withServer(plan, SELDOM_S, async (server) => watchPlanes(server, plan))
  const idle = {
    totalMs: median(seldom.map(({ totalMs }) => totalMs)),
    dataMs: median(seldom.map(({ dataMs }) => dataMs)),
  }
  const perRound = (spentMs: number, idleMs: number) => (Math.max(0, spentMs - idleMs) * OFTEN_S * 1000) / WINDOW_MS
  for (const ms of often.bareMs) samples.add('monitorBare', NAME, ms)
  for (const { totalMs, dataMs } of often.planes) {
    const roundMs = perRound(totalMs, idle.totalMs)
    samples.add('monitorRound', NAME, roundMs)
    samples.add('monitorData', NAME, perRound(dataMs, idle.dataMs))
    samples.add('monitorPercent', NAME, ((roundMs + median(often.bareMs)) / EVERY_MS) * 100)
  }
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

async function withServer<T>(
  { sandboxes }: MonitorPlan,
  everyS: number,
  work: (server: BenchServer) => Promise<T>,
): Promise<T> {
  const server = await startServer({ ...ROOM, AIRLOCK_MONITOR_EVERY_S: String(everyS) })
  try {
    let left = sandboxes
    const worker = async () => {
      while (left-- > 0) await server.client.sandboxes.create({ limits: { memoryBytes: BARE_LIMITS.memoryBytes } })
    }
    await Promise.all(Array.from({ length: CREATED_AT_ONCE }, worker))
    // Those that have just started are not idle yet.
    await sleep(WINDOW_MS / 4)
    return await work(server)
  } finally {
    await server.stop()
  }
}

interface Spent {
  readonly totalMs: number
  readonly dataMs: number
}

async function watchPlanes({ home }: BenchServer, { windows }: MonitorPlan): Promise<readonly Spent[]> {
  const spent: Spent[] = []
  for (let window = 0; window < windows; window++) {
    const before = cpuOf(home)
    await sleep(WINDOW_MS)
    const after = cpuOf(home)
    const dataMs = after.dataMs - before.dataMs
    spent.push({ dataMs, totalMs: after.totalMs - before.totalMs })
  }
  return spent
}

function cpuOf(home: string): Spent {
  const dataMs = cpuMs(pidOf(home, 'data-plane'))
  return { dataMs, totalMs: dataMs + cpuMs(pidOf(home, 'control-plane')) }
}

/** User and system time of a process, all of its threads. */
function cpuMs(pid: number | undefined): number {
  if (pid === undefined) throw new TypeError('A process of the server is gone.')
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_MS
}

async function readBare({ home }: BenchServer, { bareGroups, windows }: MonitorPlan): Promise<readonly number[]> {
  const places = { stateDir: join(home, 'data-plane'), runtimeDir: join(home, 'run') }
  const groups = findGroups(places.stateDir)
  const ids = Array.from({ length: bareGroups }, () => newId('sbx'))
  const meters = new Meters({ groups, pathsOf: (id) => pathsOf(places, id) })
  const undo = new Cleanup()
  try {
    for (const id of ids) {
      undo.add(`group ${id}`, () => void groups.remove(id))
      undo.add(`meter ${id}`, () => meters.close(id))
      groups.make(id, { limits: BARE_LIMITS, owner: 0 })
    }
    for (let warm = 0; warm < 3; warm++) readAll(meters, ids)
    const spent: number[] = []
    for (let round = 0; round < windows * 5; round++) {
      await sleep(OFTEN_S * 1000)
      spent.push(readAll(meters, ids))
    }
    return spent
  } finally {
    for (const { name, cause } of await undo.run()) console.error(`${name} could not be removed:`, cause)
  }
}

/** As the data plane reads and writes it, and the control plane reads that. */
function readAll(meters: Meters, ids: readonly string[]): number {
  const before = process.cpuUsage()
  const samples = ids.flatMap((id) => meters.read(id) ?? [])
  const read = nodeMetrics.parse(JSON.parse(JSON.stringify({ samples, tookMs: 0 })))
  const { user, system } = process.cpuUsage(before)
  if (read.samples.length !== ids.length) throw new TypeError(`${read.samples.length} of ${ids.length} were read.`)
  return (user + system) / 1000
}
