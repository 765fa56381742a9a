import { expect, it } from 'vitest'
import { KeyedLock } from './keyed-lock.ts'

it('runs work of one key in turn, of two keys side by side, and goes on after a failure', async () => {
  const lock = new KeyedLock()
  const seen: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = lock.run('a', async () => {
    await gate.promise
    seen.push('a1')
    throw new TypeError('a1 failed')
  })
  const second = lock.run('a', async () => seen.push('a2'))
  await lock.run('b', async () => seen.push('b1'))
  gate.resolve()
  await expect(first).rejects.toThrow('a1 failed')
  await second
  expect(seen).toEqual(['b1', 'a1', 'a2'])
})
