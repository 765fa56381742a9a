import { type EndReason, type FailpointName, END_REASONS } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Entry } from './entry.ts'
import { Seal, type SealHook } from './seal.ts'

describe('the seal', () => {
  const lines: string[] = []
  const order: string[] = []
  const passed: FailpointName[] = []
  const backend = {
    freeze: async (id: string) => void order.push(`freeze ${id}`),
    stats: async () => undefined,
  }
  const entry = { permit: {}, link: {} } as Entry
  const seal = (hooks: readonly SealHook[]) =>
    new Seal({
      backend,
      hooks,
      limitMs: 50,
      log: createLog({ process: 'test', level: 'warn', write: (line) => void lines.push(line) }),
      failpoint: async (name) => void passed.push(name),
    })
  const hook = (name: string, run: SealHook['run'] = async () => {}): SealHook => ({
    name,
    run: async (sandbox, signal) => {
      order.push(`${name} ${sandbox.reason}`)
      await run(sandbox, signal)
    },
  })

  beforeEach(() => {
    for (const list of [lines, order, passed]) list.length = 0
  })

  it('runs its hooks one after another while the sandbox stands still', async () => {
    await seal([hook('first'), hook('second')]).seal('sbx_1', entry, 'killed')
    expect(order).toEqual(['freeze sbx_1', 'first killed', 'second killed'])
    expect([passed, lines]).toEqual([['terminate.sealed'], []])
  })

  it('is for ends that are not as they should be, and for those that nobody explains', async () => {
    const sealed: (EndReason | null)[] = []
    const all = seal([hook('any', async ({ reason }) => void sealed.push(reason))])
    for (const reason of [...END_REASONS, null]) await all.seal('sbx_1', entry, reason)
    expect(sealed).toEqual([
      'guest_lost',
      'host_restarted',
      'agent_revoked',
      'agent_suspended',
      'agent_stale',
      'grant_revoked',
      'budget_exhausted',
      'killed',
      'pids_exhausted',
      'out_of_memory',
      'disk_exhausted',
      'cpu_exhausted',
      null,
    ])
    expect(passed).toHaveLength(END_REASONS.length + 1)
  })

  it('passes by what is not there', async () => {
    await seal([hook('none')]).seal('sbx_1', undefined, 'killed')
    expect([order, passed]).toEqual([[], ['terminate.sealed']])
  })

  it('goes on after a hook that fails, and says which', async () => {
    const broken = hook('broken', async () => Promise.reject(new TypeError('no such thing')))
    await seal([broken, hook('next')]).seal('sbx_1', entry, 'killed')
    expect(order).toEqual(['freeze sbx_1', 'broken killed', 'next killed'])
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { hook: 'broken', sandbox: 'sbx_1', reason: 'killed' },
    ])
  })

  it('is over when its time is, whatever a hook does, and says which hooks it cost', async () => {
    let aborted = false
    const hanging = hook('hanging', async (_, signal) => {
      signal.addEventListener('abort', () => (aborted = true))
      await new Promise(() => {})
    })
    await seal([hanging, hook('late')]).seal('sbx_1', entry, 'killed')
    expect(order).toEqual(['freeze sbx_1', 'hanging killed'])
    expect(aborted).toBe(true)
    expect(lines.map((line) => JSON.parse(line).hook)).toEqual(['hanging', 'late'])
    expect(passed).toEqual(['terminate.sealed'])
  })
})
