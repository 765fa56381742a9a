import { readFileSync } from 'node:fs'
import { sleep } from '@airlock/std'
import { hostProcesses } from '../../test/support/leftovers.ts'
import { airlock } from '../contenders/airlock.ts'
import type { Contender, Place } from '../contenders/contender.ts'
import { startServer } from '../server.ts'
import { quantile } from '../statistics.ts'
import { pssBytes } from './crowd.ts'
import type { Samples } from './race.ts'

const MB = 1024 * 1024
const BATCH = 10
/** A sandbox that has just started is not idle yet. */
const SETTLE_MS = 1_500
const FULL_MB = 16 * 1024
/** The machine is not driven into its last memory. */
const SPARE_MB = 2 * 1024

/** Room for as many as fit. */
const ROOM = {
  AIRLOCK_CAPACITY: '10000',
  AIRLOCK_OVERSUBSCRIBE_MEMORY: '100',
  AIRLOCK_OVERSUBSCRIBE_CPUS: '1000',
  AIRLOCK_AGENT_SANDBOXES: '10000',
  AIRLOCK_AGENT_MEMORY_MB: '10000000',
  AIRLOCK_OVERSUBSCRIBE_DISK: '100',
  AIRLOCK_AGENT_DISK_MB: '10000000',
  AIRLOCK_AGENT_CPUS: '100000',
}

export interface DensityPlan {
  readonly contenders: readonly Contender[]
  readonly samples: Samples
  /** How many are made. */
  readonly count: number
  /** Until 16 GB are used, however many that takes. Ours alone. */
  readonly fill: boolean
}

/** What there is when so many idle places are open. */
interface Point {
  readonly count: number
  /** Of the host, by what it says is available to others. */
  readonly hostMb: number
  /** Of the places, and of the server for them. */
  readonly pssMb: number
}

/**
 * How much memory each further idle place takes, by the slope over many: of what the host has available, which counts
 * everything and whatever else the machine does, and of PSS, which is of the places and of our server alone.
 */
export async function measureDensity(plan: DensityPlan): Promise<void> {
  const server = await startServer(ROOM)
  try {
    await measureOne(airlock(server), { ...plan, serverPss: () => pssMb(hostProcesses(server.home)) })
  } finally {
    await server.stop()
  }
  const docker = plan.contenders.find(({ name }) => name === 'Docker')
  if (docker) await measureOne(docker, { ...plan, fill: false, serverPss: () => 0 })
}

type OnePlan = Omit<DensityPlan, 'contenders'> & { readonly serverPss: () => number }

async function measureOne(contender: Contender, plan: OnePlan): Promise<void> {
  const places: Place[] = []
  const points: Point[] = []
  const before = availableMb()
  try {
    while (plan.fill ? !isFull(points) : places.length < plan.count) {
      for (let made = 0; made < BATCH; made++) places.push(await openUsed(contender))
      await sleep(SETTLE_MS)
      // All of them are looked at, so in a large crowd not every time.
      const pss = plan.fill && places.length % (BATCH * 10) !== 0 ? Number.NaN : await pssOf(places, plan.serverPss)
      points.push({ count: places.length, hostMb: before - availableMb(), pssMb: pss })
    }
    tell(contender.name, points, plan)
  } finally {
    for (const place of places) await place.close()
  }
}

function isFull(points: readonly Point[]): boolean {
  const used = points.at(-1)?.hostMb ?? 0
  return used >= FULL_MB || availableMb() < SPARE_MB
}

/** The first batch brings what all share: only what comes after it counts. */
function tell(name: string, points: readonly Point[], { samples, fill }: OnePlan): void {
  const settled = points.slice(1)
  const host = slope(settled.map(({ count, hostMb }) => [count, hostMb]))
  const counted = settled.filter(({ pssMb }) => !Number.isNaN(pssMb))
  const pss = slope(counted.map(({ count, pssMb }) => [count, pssMb]))
  const last = points.at(-1)
  samples.add('denseHost', name, host)
  samples.add('densePss', name, pss)
  samples.add('denseCount', name, last?.count ?? 0)
  samples.add('fitsExtrapolated', name, Math.floor(FULL_MB / Math.max(host, pss)))
  if (fill && last && last.hostMb >= FULL_MB) samples.add('fitsReally', name, last.count)
}

async function openUsed(contender: Contender): Promise<Place> {
  const place = await contender.open()
  await place.run()
  return place
}

async function pssOf(places: readonly Place[], serverPss: () => number): Promise<number> {
  const pids = await Promise.all(places.map(async (place) => place.pids()))
  return pssMb(pids.flat()) + serverPss()
}

function pssMb(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + pssBytes(pid), 0) / MB
}

function availableMb(): number {
  const kilobytes = /^MemAvailable:\s*(\d+) kB/mu.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
  return Number(kilobytes) / 1024
}

/** The median of the slopes between all pairs: what else the machine does for a moment does not move it. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const slopes = points.flatMap(([a, b], i) => points.slice(i + 1).map(([c, d]) => (d - b) / (c - a)))
  return quantile(slopes, 0.5)
}
