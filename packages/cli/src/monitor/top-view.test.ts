import type { SandboxNow } from '@airlock/sdk'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { widthOf, type Line } from './line.ts'
import { Rates } from './rates.ts'
import { someAlert, someSample, someSandbox, someTenant } from './testing/some-metrics.ts'
import { sandboxLines, sortSandboxes, TOP_SORTS, totalLine } from './top-view.ts'

const MIB = 1024 ** 2
const textOf = (line: Line): string =>
  line
    .map(({ text }) => text)
    .join('')
    .trimEnd()
const tableOf = (sandboxes: readonly SandboxNow[], width = Infinity): readonly string[] =>
  sandboxLines({ sandboxes, rates: null }, width).map(textOf)
const styleOf = (line: Line | undefined, text: string): unknown => line?.find((cell) => cell.text === text)?.style

const busy = someSandbox(1, {
  name: 'busy',
  now: someSample({ cpuPercent: 97, memoryBytes: 440 * MIB, readBytes: 2048, writtenBytes: 3 * MIB }),
  alerts: [someAlert('memory', 'warning'), someAlert('cpu', 'critical')],
})

describe('the table of sandboxes', () => {
  it('shows what each uses of its limits, and what it is beyond', () => {
    const half = someSandbox(3, { limits: { ...busy.limits, cpus: 0.5 } })
    const fresh = someSandbox(2, { now: null, agent: 'ada' })
    expect(tableOf([busy, half, fresh])).toEqual([
      'SANDBOX                         ID                              AGENT    STATE   CPU               MEMORY   PIDS    DISK  READ  WRITTEN  ALERTS',
      'busy                            sbx_00000000000000000000000001  default  active  97%  ███████▊  440M/512M  3/256  10M/1G    2K       3M  cpu! memory',
      'sbx_00000000000000000000000003                                  default  active  50%  ████       64M/512M  3/256  10M/1G    0B       0B',
      'sbx_00000000000000000000000002                                  ada      active    -               -/512M  -/256    -/1G     -        -',
    ])
  })

  it('colours each resource as its alert, and steps back with what is paused', () => {
    const paused = someSandbox(2, { state: 'paused' })
    const [, first, second] = sandboxLines({ sandboxes: [busy, paused], rates: null }, Infinity)
    expect(['97%', '440M/512M', '3/256', 'cpu! memory'].map((text) => styleOf(first, text))).toEqual([
      'red',
      'yellow',
      undefined,
      'red',
    ])
    expect(['paused', '64M/512M'].map((text) => styleOf(second, text))).toEqual(['yellow', 'dim'])
  })

  it('leaves out what matters least where there is little room', () => {
    const headAt = (width: number): string | undefined => tableOf([busy], width)[0]?.replaceAll(/ +/g, ' ')
    expect([200, 90, 70, 60, 50, 40].map(headAt)).toEqual([
      'SANDBOX AGENT STATE CPU MEMORY PIDS DISK READ WRITTEN ALERTS',
      'SANDBOX AGENT STATE CPU MEMORY PIDS DISK ALERTS',
      'SANDBOX STATE CPU MEMORY PIDS DISK ALERTS',
      'SANDBOX CPU MEMORY PIDS DISK ALERTS',
      'SANDBOX CPU MEMORY PIDS ALERTS',
      'SANDBOX CPU MEMORY ALERTS',
    ])
  })

  it('keeps the ends of ids, which tell them apart', () => {
    const names = tableOf([someSandbox(12), someSandbox(13)], 60).map((line) => line.split(' ')[0])
    expect(names).toEqual(['SANDBOX', 'sbx_000000…000000012', 'sbx_000000…000000013'])
  })

  it('is never wider than it may be', () => {
    const name = fc.option(fc.stringMatching(/^[a-z0-9]{1,60}$/), { nil: null })
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 200 }), (names, width) => {
        const sandboxes = names.map((given, i) => someSandbox(i, { name: given, alerts: busy.alerts }))
        for (const line of sandboxLines({ sandboxes, rates: null }, width))
          expect(widthOf(line)).toBeLessThanOrEqual(width)
      }),
    )
  })

  it('shows rates once there are two samples', () => {
    const rates = new Rates()
    const at = (second: number, writtenBytes: number): SandboxNow => {
      const now = someSample({ at: `2026-01-01T00:00:0${second}.000Z`, writtenBytes, readBytes: null })
      return someSandbox(1, { now })
    }
    const rowAt = (one: SandboxNow): string | undefined => {
      rates.update([one])
      return sandboxLines({ sandboxes: [one], rates }, Infinity)
        .map(textOf)[1]
        ?.slice(-15)
    }
    expect([at(0, 1000), at(5, 6_121_000), at(5, 6_121_000), at(6, 0)].map(rowAt)).toEqual([
      '     -        -',
      '     -     1.2M',
      '     -     1.2M',
      '     -       0B',
    ])
  })
})

describe('the order', () => {
  const sandboxes = [
    someSandbox(1, { name: 'b', now: someSample({ cpuPercent: 90, pids: 1 }), limits: { ...busy.limits, cpus: 4 } }),
    someSandbox(2, { name: 'a', now: someSample({ cpuPercent: 50, memoryBytes: 1, diskBytes: 1, pids: 9 }) }),
    someSandbox(3, { name: 'c', now: null }),
  ]
  it.each([
    ['cpu', 'abc'],
    ['memory', 'bac'],
    ['pids', 'abc'],
    ['disk', 'bac'],
    ['name', 'abc'],
  ] as const)('by %s has the most first, and what is not known last', (sort, expected) => {
    const sorted = sortSandboxes(sandboxes, sort)
    expect(sorted.map(({ name }) => name).join('')).toBe(expected)
  })

  it('is the same however they come', () => {
    const many = Array.from({ length: 8 }, (_, i) => someSandbox(i, { name: i % 2 === 0 ? null : `n${i % 3}` }))
    const shuffled = fc.shuffledSubarray(many, { minLength: many.length })
    fc.assert(
      fc.property(shuffled, fc.constantFrom(...TOP_SORTS), (given, sort) => {
        expect(sortSandboxes(given, sort)).toEqual(sortSandboxes(many, sort))
      }),
    )
  })
})

it('the totals say how many there are, what they are beyond, and what they use together', () => {
  const totals = [[busy, someSandbox(2)], [busy], []].map((some) => textOf(totalLine(someTenant(some).total)))
  expect(totals).toEqual([
    '2 sandboxes  1 critical 1 warning  cpus 1.22  memory 504M  pids 6  disk 20M',
    '1 sandbox  1 critical 1 warning  cpus 0.97  memory 440M  pids 3  disk 10M',
    '0 sandboxes  no alerts  cpus 0  memory 0B  pids 0  disk 0B',
  ])
})
