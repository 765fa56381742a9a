import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CounterReader } from './counter-file.ts'
import { MeterV1 } from './meter-v1.ts'
import { MeterV2 } from './meter-v2.ts'
import type { GroupMeter } from './meter.ts'

const V1: Readonly<Record<string, string>> = {
  'cpuacct/cpuacct.usage': '8123456789\n',
  'cpu/user/cpu.stat': 'nr_periods 41\nnr_throttled 12\nthrottled_time 2204518331\nnr_bursts 0\nburst_time 0\n',
  'memory/user/memory.usage_in_bytes': '104857600\n',
  'memory/user/memory.memsw.usage_in_bytes': '104857600\n',
  'memory/user/memory.limit_in_bytes': '536870912\n',
  'memory/user/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
  'memory/guest/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n',
  'pids/user/pids.current': '17\n',
  'pids/user/pids.max': '128\n',
  'pids/user/pids.events': 'max 0\n',
}

const V2: Readonly<Record<string, string>> = {
  'cpu.stat': 'usage_usec 8123456\nuser_usec 6000000\nsystem_usec 2123456\n',
  'user/cpu.stat': 'usage_usec 7000000\nnr_periods 120\nnr_throttled 17\nthrottled_usec 910233\n',
  'user/memory.current': '104857600\n',
  'user/memory.max': '536870912\n',
  'user/memory.swap.current': '4096\n',
  'memory.events': 'low 0\nhigh 0\nmax 62\noom 3\noom_kill 2\noom_group_kill 0\n',
  'user/pids.current': '17\n',
  'user/pids.max': 'max\n',
  'user/pids.events': 'max 9\n',
  'cpu.pressure': 'some avg10=12.34 avg60=8.42 avg300=6.74 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
  'memory.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n',
  'io.pressure': 'some avg10=1.50 avg60=0.00 avg300=0.00 total=1\n',
}

describe('a meter', () => {
  let root = ''
  let meter: GroupMeter | undefined
  const write = (files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), text)
    }
  }
  const openV1 = () => {
    const at = (name: string) => join(root, name)
    return (meter = new MeterV1(
      { cpuacct: at('cpuacct'), cpu: at('cpu'), memory: at('memory'), pids: at('pids') },
      new CounterReader(),
    ))
  }
  const openV2 = () => (meter = new MeterV2(root, new CounterReader()))

  beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'meter-'))))
  afterEach(() => {
    meter?.close()
    rmSync(root, { recursive: true })
  })

  it('reads the counters of version 1', () => {
    write(V1)
    expect(openV1().read()).toEqual({
      cpuMs: 8123,
      throttledMs: 2204,
      memoryBytes: 104_857_600,
      memoryHeldBytes: 104_857_600,
      swapBytes: 0,
      pids: 17,
      memoryLimitBytes: 536_870_912,
      pidsLimit: 128,
      oomKills: 3,
      pidsRefused: 0,
      pressure: null,
    })
  })

  it('reads the counters of version 2', () => {
    write(V2)
    expect(openV2().read()).toEqual({
      cpuMs: 8123,
      throttledMs: 910,
      memoryBytes: 104_857_600,
      memoryHeldBytes: 104_857_600,
      swapBytes: 4096,
      pids: 17,
      memoryLimitBytes: 536_870_912,
      pidsLimit: null,
      oomKills: 2,
      pidsRefused: 9,
      pressure: { cpu: 12.34, memory: 0, io: 1.5 },
    })
  })

  it('says null for what a kernel of version 2 does not count', () => {
    write({ 'cpu.stat': V2['cpu.stat'] ?? '' })
    expect(openV2().read()).toEqual({
      cpuMs: 8123,
      throttledMs: null,
      memoryBytes: null,
      memoryHeldBytes: null,
      swapBytes: null,
      pids: null,
      memoryLimitBytes: null,
      pidsLimit: null,
      oomKills: null,
      pidsRefused: null,
      pressure: null,
    })
  })

  it('leaves files that nobody used for a while out of what is held, where memory is filling up', () => {
    write({ ...V1, 'memory/user/memory.usage_in_bytes': '500000000\n' })
    write({ 'memory/user/memory.stat': 'cache 9\ninactive_file 3\nactive_file 2\ntotal_inactive_file 400000000\n' })
    expect(openV1().read()).toMatchObject({ memoryBytes: 500_000_000, memoryHeldBytes: 100_000_000 })
    meter?.close()
    write({ ...V2, 'user/memory.current': '500000000\n' })
    write({ 'user/memory.stat': 'anon 9\ninactive_anon 5\ninactive_file 300000000\n' })
    expect(openV2().read()).toMatchObject({ memoryBytes: 500_000_000, memoryHeldBytes: 200_000_000 })
  })

  it('reads again what has changed, through the same descriptors', () => {
    write(V1)
    const opened = openV1()
    opened.read()
    const before = readdirSync('/proc/self/fd').length
    write({ 'pids/user/pids.current': '99\n', 'memory/user/memory.oom_control': 'oom_kill 7\n' })
    expect(opened.read()).toMatchObject({ pids: 99, oomKills: 8 })
    expect(readdirSync('/proc/self/fd')).toHaveLength(before)
  })

  it('counts forks that were refused in the groups of commands, where version 1 counts them', () => {
    write({ ...V1, 'pids/user/cmd_a/pids.events': 'max 3\n', 'pids/user/cmd_b/pids.events': 'max 2\n' })
    const opened = openV1()
    expect(opened.strain()).toEqual({ oomKills: 3, pidsRefused: 5 })
    write({ 'pids/user/cmd_b/pids.events': 'max 6\n', 'pids/user/cmd_c/pids.events': 'max 1\n' })
    expect(opened.strain()).toEqual({ oomKills: 3, pidsRefused: 10 })
  })

  it('sees that there are no groups', () => {
    expect([openV1().read(), openV2().read()]).toEqual([undefined, undefined])
  })
})
