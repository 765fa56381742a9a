import type { MetricSample } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { type Exhaustion, judgeExhaustion, UNSTRAINED } from './exhaustion.ts'
import type { Observed } from './observed.ts'
import { aRow, aSample, type SaidSample } from './testing/observed.ts'

const EVERY_MS = 5000
const T0 = Date.parse('2026-01-01T00:00:00Z')
/** Older than any window. */
const ROW = aRow({ createdAt: T0 - 3_600_000 })

/** What is found at each of these samples, which are five seconds apart. */
function judged(samples: readonly SaidSample[], row: Observed['row'] = ROW): (readonly Exhaustion[])[] {
  let strain = UNSTRAINED
  let before: MetricSample | undefined
  return samples.map((said, index) => {
    const sample = aSample({ at: new Date(T0 + index * EVERY_MS).toISOString(), ...said })
    const judgement = judgeExhaustion(strain, { row, sample, before })
    strain = judgement.strain
    before = sample
    return judgement.found
  })
}

const reasons = (samples: readonly SaidSample[], row?: Observed['row']) =>
  judged(samples, row).map((found) => found.map(({ reason }) => reason))

describe('processes', () => {
  const at = (percent: number | null, pidsRefused = 0) => ({ pids: 250, pidsRefused, ofLimit: { pids: percent } })

  it('are exhausted after three samples in a row at the limit, with what was seen', () => {
    const seen = { pids: 250, limit: ROW.limits.pids, refused: 9, samples: 3 }
    const exhausted = { endedFor: 'pids', resource: 'pids', reason: 'pids_exhausted', seen }
    expect(judged([at(100, 9), at(100, 9), at(100, 9)])).toEqual([[], [], [exhausted]])
  })

  it('are exhausted near the limit only while more are refused', () => {
    expect(reasons([at(95, 0), at(95, 5), at(95, 9), at(95, 12)])).toEqual([[], [], [], ['pids_exhausted']])
    expect(reasons([at(95, 7), at(95, 7), at(95, 7), at(95, 7)])).toEqual([[], [], [], []])
    expect(reasons([at(94.9, 0), at(94.9, 5), at(94.9, 9), at(94.9, 12)])).toEqual([[], [], [], []])
  })

  it('are exhausted anywhere below it while more are refused than there may be: that is a fork bomb', () => {
    const bomb = (percent: number, times: number) => at(percent, times * ROW.limits.pids)
    expect(reasons([bomb(60, 0), bomb(48, 1), bomb(97, 2), bomb(70, 3)])).toEqual([[], [], [], ['pids_exhausted']])
    const fewer = [0, 1, 2, 3].map((times) => at(70, times * (ROW.limits.pids - 1)))
    expect(reasons(fewer)).toEqual([[], [], [], []])
  })

  it('start anew with a sample below, and go on after one that could not be taken', () => {
    expect(reasons([at(100), at(100), at(50), at(100), at(100)])).toEqual([[], [], [], [], []])
    expect(reasons([at(100), at(null), at(100), at(null), at(100)])).toEqual([[], [], [], [], ['pids_exhausted']])
  })
})

describe('memory', () => {
  const kills = (...counts: (number | null)[]) => counts.map((oomKills) => ({ oomKills }))

  it('is exhausted by three kills within a minute', () => {
    expect(judged(kills(0, 1, 2, 3))).toEqual([
      [],
      [],
      [],
      [
        {
          endedFor: 'oom',
          resource: 'memory',
          reason: 'out_of_memory',
          seen: { kills: 3, withinMs: 60_000 },
        },
      ],
    ])
    expect(reasons(kills(0, 3))).toEqual([[], ['out_of_memory']])
  })

  it('is not by three that are further apart', () => {
    const apart = [0, 1, ...Array<number>(7).fill(1), 2, ...Array<number>(7).fill(2), 3, 3]
    expect(reasons(kills(...apart)).flat()).toEqual([])
  })

  it('does not count what was killed before it was looked at, unless it is younger than a minute', () => {
    expect(reasons(kills(7, 7, 8, 9))).toEqual([[], [], [], []])
    expect(reasons(kills(3), aRow({ createdAt: T0 - 20_000 }))).toEqual([['out_of_memory']])
  })

  it('counts over samples that could not be taken', () => {
    expect(reasons(kills(0, null, 2, null, 3))).toEqual([[], [], [], [], ['out_of_memory']])
  })
})

describe('a disk', () => {
  it('is exhausted beyond its limit, which only one can be that is not enforced', () => {
    const seen = { percent: 100.1, diskBytes: 7, limit: ROW.limits.diskBytes }
    const exhausted = { endedFor: 'disk', resource: 'disk', reason: 'disk_exhausted', seen }
    const at = (disk: number | null) => ({ diskBytes: 7, ofLimit: { disk } })
    expect(judged([at(100), at(null), at(100.1)])).toEqual([[], [], [exhausted]])
  })
})

describe('processor time', () => {
  it('is exhausted at its cap, and never without one', () => {
    const used = [{ cpuMs: 9999 }, { cpuMs: null }, { cpuMs: 10_000 }]
    const row = aRow({ limits: { cpuSeconds: 10 } })
    expect(judged(used, row)).toEqual([
      [],
      [],
      [{ endedFor: 'cpu', resource: 'cpu', reason: 'cpu_exhausted', seen: { cpuMs: 10_000, limitMs: 10_000 } }],
    ])
    expect(judged(used)).toEqual([[], [], []])
  })
})
