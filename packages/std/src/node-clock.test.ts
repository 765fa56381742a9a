import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClockKeeper, NodeClock } from './node-clock.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

class FakeHost {
  bootId = 'boot-1'
  wallAt = 1_800_000_000_000
  bootAt = 50_000

  wall(): number {
    return this.wallAt
  }

  sinceBoot(): number {
    return this.bootAt
  }

  pass(ms: number): void {
    this.wallAt += ms
    this.bootAt += ms
  }
}

describe('the clock of a node', () => {
  let dir: string
  let host: FakeHost
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'airlock-clock-'))
    host = new FakeHost()
    failures = []
    jumps = []
    damages = []
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  let failures: unknown[]
  let jumps: number[]
  let damages: unknown[]
  const told = {
    onJump: (ms: number) => void jumps.push(ms),
    onFailure: (error: unknown) => void failures.push(error),
    onDamage: (error: unknown) => void damages.push(error),
  }
  const keep = (isIdle = false) => new ClockKeeper({ dir, isIdle, host, ...told })
  const clock = () => new NodeClock(dir, host)
  /** Time goes by, and the keeper does what its timer would. */
  const pass = (keeper: ClockKeeper, ms: number) => {
    for (let left = ms; left > 0; left -= 1000) {
      host.pass(1000)
      keeper.slew(1000)
    }
  }

  it('says what the wall says, as long as that does not jump', () => {
    const keeper = keep()
    const ours = clock()
    pass(keeper, 60_000)
    expect(ours.now()).toBe(host.wallAt)
  })

  it.each([DAY, -DAY])('moves no deadline when the wall jumps by %i ms, and meets it slowly', (jump) => {
    const keeper = keep()
    const ours = clock()
    const before = ours.now()
    host.wallAt += jump
    expect(ours.now()).toBe(before)
    pass(keeper, 100_000)
    expect(ours.now() - before).toBe(100_000 + Math.sign(jump) * 5_000)
    expect([keeper.behindMs, jumps]).toEqual([jump - Math.sign(jump) * 5_000, [jump]])
  })

  it('is the same in a process that starts after a jump, and after a restart of all of them', () => {
    const keeper = keep()
    const ours = clock()
    host.wallAt += DAY
    pass(keeper, 10_000)
    expect(clock().now()).toBe(ours.now())
    keep()
    expect(clock().now()).toBe(ours.now())
  })

  it('believes the wall at a start with nothing that lives, and in another boot', () => {
    keep()
    host.wallAt += DAY
    keep(true)
    expect(clock().now()).toBe(host.wallAt)
    host.wallAt += DAY
    host.bootId = 'boot-2'
    host.bootAt = 1
    keep()
    expect(clock().now()).toBe(host.wallAt)
  })

  it('never goes back, whatever is written', () => {
    keep()
    const ours = clock()
    const before = ours.now()
    host.wallAt -= DAY
    keep(true)
    host.pass(1000)
    expect(ours.now()).toBe(before)
  })

  it('goes on as it was when the file cannot be written, and says so', () => {
    const keeper = keep()
    const ours = clock()
    const before = ours.now()
    rmSync(dir, { recursive: true })
    host.wallAt += DAY
    pass(keeper, 2000)
    expect([ours.now() - before, keeper.behindMs, failures.length]).toEqual([2000, DAY, 1])
    mkdirSync(dir)
    pass(keeper, 1000)
    expect(keeper.behindMs).toBe(DAY - 50)
  })

  it.each([
    ['empty', () => ''],
    ['cut in half', (text: string) => text.slice(0, text.length / 2)],
    ['NULs', (text: string) => '\0'.repeat(text.length)],
    ['null', () => 'null'],
    ['of another shape', () => '{"bootId":"boot-1","bootedAt":"soon"}'],
  ])('starts from the wall, and reports it, when its file is %s', (_how, damage) => {
    keep()
    const path = join(dir, 'clock.json')
    writeFileSync(path, damage(readFileSync(path, 'utf8')))
    expect(clock().now()).toBe(host.wallAt)
    host.wallAt += DAY
    keep()
    expect([clock().now(), damages.length]).toEqual([host.wallAt, 1])
    keep()
    expect(damages).toHaveLength(1)
  })

  it('runs on as it did while its file is damaged', () => {
    keep()
    const ours = clock()
    writeFileSync(join(dir, 'clock.json'), '')
    host.wallAt += DAY
    const before = ours.now()
    host.bootAt += 5000
    expect(ours.now()).toBe(before + 5000)
  })

  it('counts a suspended host as time', () => {
    keep()
    const ours = clock()
    host.pass(HOUR)
    expect(ours.now()).toBe(host.wallAt)
  })

  it('reads the clocks of this host', () => {
    const real = new ClockKeeper({ dir, isIdle: true, ...told })
    const ours = new NodeClock(dir)
    expect(Math.abs(ours.now() - Date.now())).toBeLessThan(60_000)
    expect(Math.abs(real.behindMs)).toBeLessThan(60_000)
  })
})
