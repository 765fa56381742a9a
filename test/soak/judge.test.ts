import { describe, expect, it } from 'vitest'
import type { Idle, ProcessSample } from './inventory.ts'
import { judgeCounts, judgeIdle, judgeProcesses, judgeSurvivors, medianSlope } from './judge.ts'
import { PROCESSES } from './server.ts'

const QUIET: ProcessSample = {
  pid: 1,
  descriptors: 30,
  sockets: 10,
  threads: 7,
  zombies: 0,
  pssKb: 80 * 1024,
  rssKb: 90 * 1024,
  heapKb: 20 * 1024,
}

/** Looks at a server whose control plane changes by the way, and the others do not. */
function looks(controlPlane: readonly Partial<ProcessSample>[]): readonly Idle[] {
  return controlPlane.map((change) => ({
    counts: {},
    processes: {
      ...Object.fromEntries(PROCESSES.map((name) => [name, QUIET])),
      'control-plane': { ...QUIET, ...change },
    },
  }))
}

function leaksOf(controlPlane: readonly Partial<ProcessSample>[]): readonly string[] {
  return judgeProcesses(looks(controlPlane))
    .filter(({ verdict }) => verdict === 'leak')
    .map(({ what }) => what)
}

describe('the verdict', () => {
  it('is a leak when there is more of something than before, or something that was not there', () => {
    const rows = judgeCounts('idle', { mounts: 0, sockets: 3 }, { mounts: 1, sockets: 2, loops: 1 })
    expect(rows.map(({ what, verdict }) => [what, verdict])).toEqual([
      ['idle: mounts', 'leak'],
      ['idle: sockets', 'within'],
      ['idle: loops', 'leak'],
    ])
  })

  it('is a leak when something could not be counted', () => {
    expect(judgeCounts('idle', { rows: 0 }, { rows: Number.NaN })).toMatchObject([{ verdict: 'leak' }])
  })

  it('allows for connections that are kept, and for no more', () => {
    const look = (unix: number): Idle => ({ counts: { 'unix sockets': unix, mounts: 0 }, processes: {} })
    const verdicts = (after: number) => judgeIdle([look(10), look(after)]).map(({ verdict }) => verdict)
    expect([verdicts(22), verdicts(23)]).toEqual([
      ['within', 'same'],
      ['leak', 'same'],
    ])
  })

  it('is a leak for a process that could not be looked at twice', () => {
    expect(judgeProcesses([]).map(({ verdict }) => verdict)).toEqual(PROCESSES.map(() => 'leak'))
  })

  it('sees descriptors, zombies and memory that grow, and those of no other process', () => {
    const steady = [{}, {}, {}, {}, {}]
    expect(leaksOf(steady)).toEqual([])
    expect(leaksOf(steady.map((_, n) => ({ descriptors: 30 + 4 * n })))).toEqual(['control-plane: descriptors'])
    expect(leaksOf(steady.map((_, n) => ({ zombies: n })))).toEqual(['control-plane: zombies'])
    expect(leaksOf(steady.map((_, n) => ({ heapKb: (20 + 2 * n) * 1024 })))).toEqual(['control-plane: heap, MB'])
    expect(leaksOf(steady.map((_, n) => ({ pssKb: (80 + 10 * n) * 1024 })))).toEqual([
      'control-plane: memory (PSS), MB',
    ])
    expect(leaksOf([{}, { heapKb: null }])).toEqual(['control-plane: heap, MB'])
  })

  it('does not take one large sample of memory for a slope', () => {
    expect(leaksOf([{}, {}, { pssKb: 400 * 1024 }, {}, {}])).toEqual([])
    expect(leaksOf([{}, {}, {}, {}, { pssKb: 130 * 1024 }])).toEqual([])
  })

  it('compares a process with itself alone: another life is another process', () => {
    const others = [
      { pid: 2, descriptors: 10 },
      { pid: 3, descriptors: 50 },
      { pid: 3, descriptors: 51 },
    ]
    expect(leaksOf(others)).toEqual([])
    const survivors = judgeSurvivors(looks([...others, { pid: 4, descriptors: 20 }, { pid: 4, descriptors: 40 }]))
    expect(survivors.filter(({ verdict }) => verdict === 'leak')).toEqual([
      {
        what: 'control-plane, while others died: descriptors',
        before: 20,
        after: 40,
        allowed: 'at most 12 more',
        verdict: 'leak',
      },
    ])
  })
})

describe('the median slope', () => {
  it('is that of a line, for a line', () => {
    expect(medianSlope([1, 3, 5, 7, 9])).toBe(2)
  })

  it('is not moved by an outlier', () => {
    expect(medianSlope([1, 1, 1, 100, 1, 1, 1])).toBe(0)
  })
})
