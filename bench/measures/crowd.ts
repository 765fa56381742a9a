import { readFileSync } from 'node:fs'
import { sleep } from '@airlock/std'
import type { Contender, Place } from '../contenders/contender.ts'
import type { Race } from './race.ts'

const CROWD = 20
/** A sandbox that has just started is not idle yet. */
const SETTLE_MS = 2_000
const MB = 1024 * 1024

/** Twenty at once, from nothing to the end of all. */
export async function raceCrowds({ contenders, rounds, samples }: Race): Promise<void> {
  for (let round = 0; round < rounds; round++)
    for (const contender of contenders) {
      const before = performance.now()
      await Promise.all(Array.from({ length: CROWD }, () => contender.cold()))
      const wallMs = performance.now() - before
      samples.add('crowdWall', contender.name, wallMs)
      samples.add('crowdEach', contender.name, wallMs / CROWD)
    }
}

/** What an idle place costs, when it is the only one and when there are twenty that share what can be shared. */
export async function measureMemory({ contenders, rounds, samples }: Race): Promise<void> {
  for (const contender of contenders)
    for (let round = 0; round < rounds; round++) {
      const [alone] = await idleBytes(contender, 1)
      if (alone === undefined || alone === 0) continue
      samples.add('idleAlone', contender.name, alone / MB)
      for (const bytes of await idleBytes(contender, CROWD)) samples.add('idleAmong', contender.name, bytes / MB)
    }
}

async function idleBytes(contender: Contender, count: number): Promise<readonly number[]> {
  const places: Place[] = []
  try {
    for (let made = 0; made < count; made++) {
      const place = await contender.open()
      places.push(place)
      await place.run()
    }
    await sleep(SETTLE_MS)
    const pids = await Promise.all(places.map((place) => place.pids()))
    return pids.map((each) => each.reduce((sum, pid) => sum + pssBytes(pid), 0))
  } finally {
    for (const place of places) await place.close()
  }
}

/** A process's own memory, and its share of what it has in common with others. */
export function pssBytes(pid: number): number {
  const kilobytes = /^Pss:\s*(\d+) kB/mu.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]
  return Number(kilobytes ?? 0) * 1024
}
