import { END_REASONS, type EndReason } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { causeOfEnd, LOST_FOR, stepErrorOfEnd } from './end-cause.ts'

const OWN: ReadonlySet<EndReason> = new Set<EndReason>([
  'terminated',
  'ttl',
  'idle',
  'shutdown',
  'guest_lost',
  'host_restarted',
  'create_failed',
  'create_interrupted',
  'agent_stale',
  'paused_too_long',
])

describe('what still ran when its sandbox ended', () => {
  it.each(END_REASONS)('says of %s whether somebody ordered it', (endReason) => {
    const wanted = OWN.has(endReason) ? 'sandbox_ended' : 'killed_by_policy'
    expect(causeOfEnd({ endReason, error: null })).toBe(wanted)
  })

  it.each(['out_of_memory', 'pids_exhausted'] as const)('says %s when that ended its guest', (code) => {
    const ended = { endReason: 'guest_lost', error: LOST_FOR[code] } as const
    expect(causeOfEnd(ended)).toBe(code)
    expect(stepErrorOfEnd(ended)).toEqual({
      name: 'RuntimeCrashed',
      message: `The sandbox ended before the step did. ${LOST_FOR[code].message}`,
      traceback: '',
    })
  })

  it('names the reason to a step', () => {
    expect(stepErrorOfEnd({ endReason: 'ttl', error: null }).message).toBe(
      'The sandbox ended before the step did. It ended by ttl.',
    )
  })
})
