import type { EndCause } from '@airlock/contract'
import type { GuestCommandEnd } from '@airlock/contract/guest'
import { describe, expect, it } from 'vitest'
import { causeOf, endedWell, type SeenOutside } from './end-cause.ts'

const exit = (exitCode: number): Partial<GuestCommandEnd> => ({ exitCode })
const by = (signal: string): Partial<GuestCommandEnd> => ({ exitCode: null, signal })

/** Everything grew, everything is full: what is chosen is the most certain. */
const ALL: Partial<SeenOutside> = {
  after: { oomKills: 2, pidsRefused: 2 },
  cpuSeconds: 1,
  isDiskFull: async () => true,
}
const OOM = { after: { oomKills: 2, pidsRefused: 1 } }
const PIDS = { after: { oomKills: 1, pidsRefused: 2 } }
const FULL = { isDiskFull: async () => true }
const SPENT = { cpuSeconds: 1 }

const CASES: readonly (readonly [EndCause, Partial<GuestCommandEnd>, Partial<SeenOutside>, string])[] = [
  ['exit', exit(1), {}, 'its own failure'],
  ['signal', by('SIGKILL'), {}, 'a signal that nothing explains'],
  ['timeout', { ...by('SIGKILL'), timedOut: true }, ALL, 'a deadline before all'],
  ['forbidden_call', by('SIGSYS'), ALL, 'the signal of the filter'],
  ['forbidden_call', exit(159), ALL, 'what a shell makes of it'],
  ['cpu_time', by('SIGXCPU'), ALL, 'the signal of the clock'],
  ['cpu_time', exit(152), ALL, 'what a shell makes of it'],
  ['cpu_time', by('SIGKILL'), SPENT, 'the kill after it'],
  ['cpu_time', exit(137), SPENT, 'what a shell makes of that'],
  ['signal', by('SIGKILL'), { ...SPENT, ranMs: 999 }, 'a kill before its time was up'],
  ['out_of_memory', by('SIGKILL'), ALL, 'a counted kill'],
  ['out_of_memory', exit(3), ALL, 'a shell whose child was killed'],
  ['signal', by('SIGTERM'), ALL, 'a signal that nothing of it sends'],
  ['pids_exhausted', exit(1), { ...PIDS, ...FULL }, 'a refused fork'],
  ['pids_exhausted', by('SIGABRT'), PIDS, 'a thread that could not be made'],
  ['pids_exhausted', { ...exit(1), forksRefused: 1 }, {}, 'a fork refused in a group that is gone'],
  ['signal', by('SIGKILL'), PIDS, 'a kill, though forks were refused'],
  ['disk_full', exit(1), FULL, 'a full disk'],
  ['disk_full', by('SIGBUS'), FULL, 'a page that found no room'],
  ['signal', by('SIGKILL'), FULL, 'a kill, though the disk is full'],
  ['exit', exit(1), { before: null, ...OOM }, 'counters of which nobody knows what they were'],
  ['exit', exit(1), { after: null }, 'counters that are gone'],
  ['exit', exit(1), { after: { oomKills: null, pidsRefused: null } }, 'counters that the kernel does not have'],
]

describe('why something failed', () => {
  it.for(CASES)('is %s by %j, %j: %s', async ([cause, how, seen]) => {
    const end = { exitCode: null, signal: null, timedOut: false, durationMs: 1, ...how }
    const before = { oomKills: 1, pidsRefused: 1 }
    const plain = { before, after: before, cpuSeconds: undefined, ranMs: 1000, isDiskFull: async () => false }
    expect(await causeOf(end, { ...plain, ...seen })).toBe(cause)
  })

  it('is asked of everything but what ended well', () => {
    const end = { exitCode: 0, signal: null, timedOut: false, durationMs: 1 }
    const failures = [{ exitCode: 1 }, { exitCode: null, signal: 'SIGKILL' }, { timedOut: true }, { signal: 'SIGINT' }]
    expect([end, ...failures.map((how) => ({ ...end, ...how }))].map((one) => endedWell(one))).toEqual([
      true,
      false,
      false,
      false,
      false,
    ])
  })
})
