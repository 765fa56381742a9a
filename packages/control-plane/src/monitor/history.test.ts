import type { MetricPoint } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { History, KEPT_MS } from './history.ts'
import { toSampled } from './tally.ts'
import { aSample } from './testing/observed.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** A whole quarter of an hour. */
const START = 1_700_000_100_000

for (const dialect of DIALECTS)
  describe(`history in ${dialect.name}`, dialect.options, () => {
    let stores: TestStores
    let place: StorePlace
    let store: Store
    let history: History

    beforeAll(async () => {
      stores = await dialect.start()
    })
    afterAll(async () => stores?.stop())
    beforeEach(async () => {
      place = await stores.make()
      store = await openStore(place)
      history = new History(store)
    })
    afterEach(async () => store.close())

    /** Samples every five seconds that use half a processor, one process more each. */
    function add(subject: string, of: { readonly from: number; readonly count: number }): void {
      for (let i = 0; i < of.count; i++) {
        const sample = (index: number) =>
          aSample({
            at: new Date(of.from + index * 5000).toISOString(),
            cpuMs: index * 2500,
            memoryBytes: 1000,
            pids: index,
          })
        history.add(subject, toSampled(sample(i), i === 0 ? undefined : sample(i - 1)))
      }
    }

    const rows = async (table: string) => Number((await stores.run(place, `select count(*) from ${table}`))[0])
    const read = async (resolution: '5s' | '1m' | '15m', since = START) => history.read('sbx_1', { resolution, since })
    const shown = (points: readonly MetricPoint[]) =>
      points.map(({ at, samples, cpuPercent, pids, pidsMax }) => [
        Date.parse(at) - START,
        samples,
        cpuPercent,
        pids,
        pidsMax,
      ])

    it('is the same before it is written and after, by another that knows only the store', async () => {
      add('sbx_1', { from: START, count: 30 })
      add('sbx_2', { from: START, count: 3 })
      const unwritten = [await read('5s'), await read('1m'), await read('15m')]
      expect(shown(unwritten[1] ?? [])).toEqual([
        [0, 12, 50, 6, 11],
        [MINUTE, 12, 50, 18, 23],
        [2 * MINUTE, 6, 50, 27, 29],
      ])
      expect(shown(unwritten[2] ?? [])).toEqual([[0, 30, 50, 15, 29]])
      expect(unwritten[0]?.slice(0, 2)).toMatchObject([
        { at: new Date(START).toISOString(), spanMs: 0, cpuPercent: null, pids: 0 },
        { at: new Date(START).toISOString(), spanMs: 5000, cpuPercent: 50, pids: 1 },
      ])
      history.close(() => false)
      await history.write()
      history = new History(store)
      expect([await read('5s'), await read('1m'), await read('15m')]).toEqual(unwritten)
      expect([await rows('metric_points'), await rows('metric_details')]).toEqual([4, 4])
    })

    it('puts the two halves of a minute in which the server was restarted together', async () => {
      add('sbx_1', { from: START, count: 6 })
      history.close(() => false)
      await history.write()
      history = new History(store)
      add('sbx_1', { from: START + 30_000, count: 6 })
      expect(shown(await read('1m'))).toEqual([[0, 12, 50, 3, 5]])
      history.close(() => false)
      await history.write()
      await history.write()
      expect(shown(await read('1m'))).toEqual([[0, 12, 50, 3, 5]])
      expect((await read('5s')).length).toBe(12)
    })

    it('writes a minute when the next one begins: a crash loses that one, and nothing before it', async () => {
      add('sbx_1', { from: START, count: 13 })
      await history.write()
      expect((await read('5s')).length).toBe(13)
      history = new History(store)
      expect((await read('5s')).length).toBe(12)
    })

    it('keeps what the store does not take, and writes it when it does', async () => {
      add('sbx_1', { from: START, count: 13 })
      await history.write()
      await stores.run(place, 'alter table metric_details rename to hidden')
      add('sbx_1', { from: START + 2 * MINUTE, count: 1 })
      await expect(history.write()).rejects.toThrow()
      await stores.run(place, 'alter table hidden rename to metric_details')
      await history.write()
      expect([await rows('metric_points'), await rows('metric_details')]).toEqual([2, 2])
    })

    it('keeps samples for a quarter of an hour, minutes for a day and quarters for a week', async () => {
      for (const subject of ['sbx_1', 'sbx_2', 'sbx_3']) add(subject, { from: START, count: 12 * 30 })
      history.close(() => false)
      await history.write()
      const quarters = await read('15m')
      expect(shown(quarters)).toEqual([
        [0, 180, 50, 90, 179],
        [15 * MINUTE, 180, 50, 270, 359],
      ])
      expect([await rows('metric_points'), await rows('metric_details')]).toEqual([90, 90])

      await history.shrink(START + KEPT_MS['5s'] + 5 * MINUTE)
      expect([await rows('metric_points'), await rows('metric_details')]).toEqual([90, 3 * 26])
      await history.shrink(START + HOUR)
      expect([await rows('metric_points'), await rows('metric_details')]).toEqual([90, 0])

      await history.shrink(START + KEPT_MS['1m'] + 20 * MINUTE)
      expect(await rows('metric_points')).toBe(3 * (15 + 1))
      expect(await read('15m')).toEqual(quarters)
      await history.shrink(START + KEPT_MS['1m'] + 40 * MINUTE)
      expect(await rows('metric_points')).toBe(3 * 2)
      expect(await read('15m')).toEqual(quarters)
      expect(await read('1m')).toEqual([])

      await history.shrink(START + KEPT_MS['15m'] + 20 * MINUTE)
      expect(await rows('metric_points')).toBe(3)
      await history.shrink(START + KEPT_MS['15m'] + HOUR)
      expect(await rows('metric_points')).toBe(0)
    })

    it('shrinks what a long pause left behind, a bounded part at a time', async () => {
      for (let i = 0; i < 100; i++) add(`sbx_${i}`, { from: START, count: 12 * 3 })
      history.close(() => false)
      await history.write()
      const later = START + 2 * KEPT_MS['15m']
      let rounds = 0
      for (; (await rows('metric_points')) + (await rows('metric_details')) > 0; rounds++) await history.shrink(later)
      expect(rounds).toBeLessThan(10)
    })

    it('begins where it is asked to', async () => {
      add('sbx_1', { from: START, count: 36 })
      expect((await read('1m', START + MINUTE)).length).toBe(2)
      expect((await read('5s', START + 2 * MINUTE)).length).toBe(12)
    })
  })
