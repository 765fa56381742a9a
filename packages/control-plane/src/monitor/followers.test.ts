import type { MetricEvent } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { Followers } from './followers.ts'
import { aSample } from './testing/observed.ts'

const sampleOf = (sandbox: string, pids: number): MetricEvent => ({
  event: 'sample',
  sandbox,
  sample: aSample({ pids }),
})

function follow(followers: Followers, sandbox: string, signal = new AbortController().signal) {
  const left: string[] = []
  const events = followers.follow(sandbox, { first: [], since: 0, onEnd: () => left.push(sandbox) }, signal)
  return { events, left }
}

describe('followers', () => {
  it('hear of their own sandbox alone, in order, until it has ended', async () => {
    const followers = new Followers()
    const { events, left } = follow(followers, 'one')
    const told = [sampleOf('one', 1), sampleOf('one', 2)]
    followers.tell([sampleOf('two', 9), ...told])
    followers.endOthers(new Set(['two']), 1)
    followers.endOthers(new Set(['two']), 2)
    expect(await Array.fromAsync(events)).toEqual([...told, { event: 'ended', sandbox: 'one' }])
    expect(left).toEqual(['one'])
  })

  it('leave once, whether they stop to read, go away, or never came', async () => {
    const followers = new Followers()
    const [reading, gone, never] = [new AbortController(), new AbortController(), AbortSignal.abort()]
    const first = follow(followers, 'one', reading.signal)
    followers.tell([sampleOf('one', 1)])
    for await (const event of first.events) if (event.event === 'sample') break
    reading.abort()
    const second = follow(followers, 'one', gone.signal)
    const waiting = second.events.next()
    gone.abort()
    expect(await waiting).toEqual({ done: true, value: undefined })
    const third = follow(followers, 'one', never)
    expect(await Array.fromAsync(third.events)).toEqual([])
    expect([first.left, second.left, third.left]).toEqual([['one'], ['one'], ['one']])
  })

  it('are let go when they read nothing of what happens', async () => {
    const followers = new Followers()
    const { events, left } = follow(followers, 'one')
    for (let i = 0; i < 512; i++) followers.tell([sampleOf('one', i)])
    expect((await events.next()).done).toBe(false)
    expect(left).toEqual([])
    for (let i = 0; i < 2; i++) followers.tell([sampleOf('one', i)])
    expect([left, (await events.next()).done]).toEqual([['one'], true])
  })
})
