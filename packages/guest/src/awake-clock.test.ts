import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { AwakeClock } from './awake-clock.ts'

describe('AwakeClock', () => {
  const told: number[] = []
  let clock: AwakeClock
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    told.length = 0
    clock = new AwakeClock()
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  const after = (ms: number) => clock.after(ms, () => void told.push(performance.now()))
  const at = async (ms: number) => vi.advanceTimersByTimeAsync(ms - performance.now())

  it('calls once, when the time is over', async () => {
    const began = performance.now()
    after(1000)
    await at(began + 999)
    expect(told).toEqual([])
    await at(began + 60_000)
    expect(told).toEqual([began + 1000])
  })

  it('does not call what was taken back', async () => {
    const takeBack = after(1000)
    takeBack()
    await at(performance.now() + 60_000)
    expect(told).toEqual([])
  })

  it('does not count the time that the host says was slept, however often it says so', async () => {
    const began = performance.now()
    after(1000)
    await at(began + 600)
    clock.slept(5000)
    clock.slept(5000)
    clock.slept(3000)
    await at(began + 5999)
    expect(told).toEqual([])
    await at(began + 60_000)
    expect(told).toEqual([began + 6000])
  })

  it('counts only what was slept after it began', async () => {
    clock.slept(5000)
    const began = performance.now()
    after(1000)
    await at(began + 60_000)
    expect(told).toEqual([began + 1000])
  })

  it('waits for the host when a timer is so late that it may have slept', async () => {
    const began = performance.now()
    const now = vi.spyOn(performance, 'now')
    now.mockReturnValue(began)
    after(1000)
    // As after a pause: the clock went on for nine seconds while nothing ran.
    now.mockReturnValue(began + 9000)
    await vi.advanceTimersByTimeAsync(1000)
    expect(told).toEqual([])
    clock.slept(8500)
    now.mockReturnValue(began + 9250)
    await vi.advanceTimersByTimeAsync(250)
    expect(told).toEqual([])
    now.mockReturnValue(began + 9500)
    await vi.advanceTimersByTimeAsync(250)
    expect(told).toEqual([began + 9500])
  })

  it('does not wait for a host that is not there for longer than the host would', async () => {
    const began = performance.now()
    after(1000)
    clock.detached()
    await at(began + 2900)
    expect(told).toEqual([])
    await at(began + 60_000)
    expect(told).toEqual([began + 3000])
  })

  it('goes on at once when the host is back and nothing was slept', async () => {
    const began = performance.now()
    after(1000)
    clock.detached()
    await at(began + 1100)
    clock.attached()
    await at(began + 60_000)
    expect(told).toEqual([began + 1250])
  })
})
