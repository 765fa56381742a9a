import { expect, it } from 'vitest'
import { LoopShare } from './loop-share.ts'

const spend = (ms: number) => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

it('work beyond the share of a turn waits, and work of another share does not', async () => {
  const [busy, other] = [new LoopShare(), new LoopShare()]
  const order: string[] = []
  const works = ['first', 'second', 'third'].map(async (name) =>
    busy.run(() => {
      spend(10)
      order.push(name)
    }),
  )
  await Promise.all([...works, other.run(() => order.push('other'))])
  expect(order).toEqual(['first', 'other', 'second', 'third'])
})

it('work that fails counts too', async () => {
  const share = new LoopShare()
  const failing = share.run(() => {
    spend(10)
    throw new TypeError('failed')
  })
  await expect(failing).rejects.toThrow('failed')
  expect(await share.run(() => 'next')).toBe('next')
})
