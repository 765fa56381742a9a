import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LatestTimes } from './latest-times.ts'
import { openStore, type Store } from './store.ts'

let dir: string
let store: Store
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-times-'))
  store = await openStore({ file: join(dir, 'airlock.db') })
})
afterEach(async () => {
  await store.close()
  rmSync(dir, { recursive: true, force: true })
})

describe('latest times', () => {
  it('are written once each, at their latest', async () => {
    const written: unknown[] = []
    const times = new LatestTimes(store, async (_db, name, at) => void written.push([name, at]))
    times.see('a', 5)
    times.see('a', 9)
    times.see('a', 7)
    times.see('b', 1)
    await times.flush()
    await times.flush()
    expect(written).toEqual([
      ['a', 9],
      ['b', 1],
    ])
  })

  it('that could not be written are kept, but do not go over what was seen meanwhile', async () => {
    let isFull = true
    const written: [string, number][] = []
    const times = new LatestTimes(store, async (_db, name, at) => {
      if (isFull) {
        times.see('a', 9)
        throw new TypeError('full')
      }
      written.push([name, at])
    })
    times.see('a', 5)
    times.see('b', 5)
    await expect(times.flush()).rejects.toThrow('full')
    expect([times.get('a'), times.get('b')]).toEqual([9, 5])
    isFull = false
    await times.flush()
    expect(Object.fromEntries(written)).toEqual({ a: 9, b: 5 })
  })

  it('are bounded: who comes when it is full is forgotten', async () => {
    const times = new LatestTimes(store, async () => {})
    for (let i = 0; i < 50_000; i++) times.see(`n${i}`, 1)
    times.see('late', 1)
    times.see('n0', 2)
    expect([times.get('late'), times.get('n0')]).toEqual([undefined, 2])
  })
})
