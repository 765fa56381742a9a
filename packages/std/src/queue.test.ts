import { describe, expect, it } from 'vitest'
import { BoundedQueue } from './queue.ts'

describe('BoundedQueue', () => {
  it('hands over every item in order and ends', async () => {
    const queue = new BoundedQueue<number>(2)
    const read = Array.fromAsync(queue)
    for (let item = 0; item < 100; item++) await queue.push(item)
    queue.end()
    expect(await read).toEqual(Array.from({ length: 100 }, (_, item) => item))
  })

  it('holds the producer back at the bound instead of losing or growing', async () => {
    const queue = new BoundedQueue<string>(10)
    await queue.push('a', 6)
    let second = 'waiting'
    const pushed = queue.push('b', 6).then(() => (second = 'pushed'))
    await Promise.resolve()
    expect(second).toBe('waiting')
    const reader = queue[Symbol.asyncIterator]()
    expect(await reader.next()).toEqual({ done: false, value: 'a' })
    await pushed
    expect(second).toBe('pushed')
  })

  it('takes one item that is heavier than the bound, for it would never fit', async () => {
    const queue = new BoundedQueue<string>(1)
    expect(await queue.push('heavy', 100)).toBe(true)
  })

  it('throws what it failed with after the items before it', async () => {
    const queue = new BoundedQueue<number>(8)
    const fault = new TypeError('broken')
    await queue.push(1)
    queue.fail(fault)
    const reader = queue[Symbol.asyncIterator]()
    expect(await reader.next()).toEqual({ done: false, value: 1 })
    await expect(reader.next()).rejects.toBe(fault)
  })

  it('tells the producer when nobody reads any more', async () => {
    const queue = new BoundedQueue<number>(1)
    await queue.push(1)
    const blocked = queue.push(2)
    for await (const item of queue) {
      expect(item).toBe(1)
      break
    }
    expect(await queue.push(3)).toBe(false)
    await blocked
  })
})
