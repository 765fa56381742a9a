import { waitFor } from '@airlock/std'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { testGroupName } from '../../../../../../../test/support/test-group.ts'
import { CounterReader } from './counter-file.ts'
import { readHierarchies } from './hierarchies.ts'
import { GroupsV2 } from './v2.ts'

const unified = readHierarchies().find(({ version }) => version === 2)
const PARENT = testGroupName()

/** Needs a version 2 tree, with or without controllers: what needs them is tried by the conformance suite. */
describe.skipIf(!unified)('GroupsV2 on the tree of this host', () => {
  const root = unified?.mountPoint ?? ''

  it('freezes, sees, kills and removes what is in the groups of a sandbox', async () => {
    const groups = new GroupsV2({ root, mountPoint: root }, PARENT)
    const command = join(root, PARENT, 'sbx_a', 'user', 'cmd')
    mkdirSync(join(root, PARENT, 'sbx_a', 'guest'), { recursive: true })
    mkdirSync(command, { recursive: true })
    const script = 'echo 0 >"$0/cgroup.procs"; sleep 60 & sleep 60'
    const child = spawn('/bin/sh', ['-c', script, command], { stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
    await waitFor(() => groups.pids('sbx_a').length === 3 || undefined, soon())

    expect(groups.ids()).toEqual(['sbx_a'])
    expect(groups.stats('sbx_a')?.processes).toBe(3)
    expect(groups.holdsGuest('sbx_a', child.pid ?? 0)).toBe(false)
    expect(groups.runtimePath('sbx_a')).toBe(`/${PARENT}/sbx_a/guest`)
    expect(groups.remove('sbx_a')).toBe(false)

    groups.freeze('sbx_a')
    await waitFor(() => groups.isFrozen('sbx_a') || undefined, soon())
    groups.kill('sbx_a')
    groups.thaw('sbx_a')
    expect(await ended).toBe('SIGKILL')
    await waitFor(() => groups.remove('sbx_a') || undefined, soon())
    expect(groups.ids()).toEqual([])
    expect(groups.stats('sbx_a')).toBeUndefined()
    expect(readdirSync(root)).not.toContain(PARENT)
  })

  it('counts what the groups of a sandbox use, and holds nothing of them when they are gone', async () => {
    const groups = new GroupsV2({ root, mountPoint: root }, PARENT)
    const command = join(root, PARENT, 'sbx_c', 'user', 'cmd')
    mkdirSync(command, { recursive: true })
    const script = 'echo 0 >"$0/cgroup.procs"; while :; do :; done'
    const child = spawn('/bin/sh', ['-c', script, command], { stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const reader = new CounterReader()
    const meter = groups.meter('sbx_c', reader)
    await waitFor(() => ((meter.read()?.cpuMs ?? 0) >= 50 ? true : undefined), soon())

    const untold = {
      throttledMs: null,
      memoryBytes: null,
      memoryHeldBytes: null,
      swapBytes: null,
      pids: null,
      oomKills: null,
    }
    expect(meter.read()).toEqual({
      ...untold,
      cpuMs: expect.any(Number),
      memoryLimitBytes: null,
      pidsLimit: null,
      pidsRefused: null,
      pressure: existsSync('/proc/pressure')
        ? { cpu: expect.any(Number), memory: expect.any(Number), io: expect.any(Number) }
        : null,
    })
    const usage = meter.usage('cmd')
    expect(usage).toEqual({ cpuMs: expect.any(Number), memoryPeakBytes: null, isWhole: false })
    expect(usage?.cpuMs ?? 0).toBeGreaterThanOrEqual(50)
    expect(reader.held).toBeGreaterThan(0)

    groups.kill('sbx_c')
    await ended
    await waitFor(() => groups.remove('sbx_c') || undefined, soon())
    expect([meter.read(), meter.usage('cmd')]).toEqual([undefined, undefined])
    meter.close()
    expect(reader.held).toBe(0)
  })

  it('treats a sandbox that has no group as gone', () => {
    const groups = new GroupsV2({ root, mountPoint: root }, PARENT)
    groups.freeze('sbx_b')
    groups.refuseForks('sbx_b')
    groups.kill('sbx_b')
    groups.thaw('sbx_b')
    expect({ pids: groups.pids('sbx_b'), removed: groups.remove('sbx_b'), frozen: groups.isFrozen('sbx_b') }).toEqual({
      pids: [],
      removed: true,
      frozen: false,
    })
  })
})

function soon(): { signal: AbortSignal; everyMs: number } {
  return { signal: AbortSignal.timeout(100_000), everyMs: 5 }
}
