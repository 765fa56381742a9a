import { createLog, sleep, systemClock } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestPostgres } from '../../../../test/support/postgres.ts'
import { requires } from '../../../../test/support/requires.ts'
import { findNode } from '../store/nodes.ts'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { type LeaseTimes, NodeLease } from './node-lease.ts'
import { Readiness } from './readiness.ts'

const TIMES = { beatMs: 50, aloneMs: 50, silentMs: 4_500, heldMs: 3_000, patienceMs: 1_500, claimMs: 12_000 }
const log = createLog({ process: 'control-plane', level: 'silent', write: () => {} })

let store: Store
let displaced: string[]
const leases: NodeLease[] = []

async function open(place: StorePlace): Promise<void> {
  store = await openStore(place)
  displaced = []
}

async function close(): Promise<void> {
  for (const lease of leases.splice(0)) await lease.release()
  await store.close()
}

function lease(holder: string, id = 'one', times: LeaseTimes = TIMES): NodeLease {
  const onDisplaced = () => void displaced.push(holder)
  const made = new NodeLease({ store, node: { id, holder }, clock: systemClock, log, onDisplaced, times })
  leases.push(made)
  return made
}

async function claimed(holder: string, id = 'one'): Promise<NodeLease> {
  const made = lease(holder, id)
  await made.claim()
  made.start()
  return made
}

const holder = async () => (await store.query((db) => findNode(db, 'one')))?.holder

for (const dialect of DIALECTS)
  describe(`the lease of a node on ${dialect.name}`, dialect.options, () => {
    let stores: TestStores
    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => open(await stores.make()))
    afterEach(close)

    it('is taken at once by the first, and by the same one again after a crash', async () => {
      expect((await claimed('a')).isHeld).toBe(true)
      expect((await claimed('a')).isHeld).toBe(true)
      expect([await holder(), displaced]).toEqual(['a', []])
    })

    it('is taken at once when it was released', async () => {
      await (await claimed('a')).release()
      await claimed('b')
      expect(await holder()).toBe('b')
    })
  })

describe('the lease of a node in a shared store', requires('postgres'), () => {
  let postgres: TestPostgres
  beforeAll(async () => (postgres = await TestPostgres.start()))
  afterAll(() => postgres?.stop())
  beforeEach(async () => open({ url: await postgres.createDatabase() }))
  afterEach(close)

  it('is not held before it is claimed', () => expect(lease('a').isHeld).toBe(false))

  it('leaves other nodes alone', async () => {
    const both = [await claimed('a', 'one'), await claimed('b', 'two')]
    await sleep(4 * TIMES.beatMs)
    expect([both.map((one) => one.isHeld), displaced]).toEqual([[true, true], []])
  })

  it('is refused to a second server as long as the first gives signs of life', async () => {
    await claimed('a')
    await expect(lease('b').claim()).rejects.toMatchObject({ code: 'already_running' })
    expect([await holder(), displaced]).toEqual(['a', []])
  })

  it('goes to a second server when the first is silent, and the first finds out that it was displaced', async () => {
    const silent = lease('a')
    await silent.claim()
    await claimed('b')
    expect([await holder(), silent.isHeld]).toEqual(['b', false])
    silent.start()
    await expect.poll(() => displaced, { timeout: 100_000 }).toEqual(['a'])
  })

  it('goes to one of several that wait for it', async () => {
    await lease('a').claim()
    const tries = await Promise.allSettled([claimed('b'), claimed('c')])
    expect(tries.map((one) => one.status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  it('is not held any more when the store does not answer, and is again when it does', async () => {
    const ours = await claimed('a')
    await postgres.shutDown()
    await expect.poll(() => ours.isHeld, { timeout: 100_000 }).toBe(false)
    await postgres.restart()
    await expect.poll(() => ours.isHeld, { timeout: 100_000 }).toBe(true)
    expect(displaced).toEqual([])
  })

  it('says that the store is gone long before it is not held any more', async () => {
    const ours = lease('a', 'one', { ...TIMES, heldMs: 60_000 })
    await ours.claim()
    ours.start()
    await postgres.shutDown()
    await expect.poll(() => ours.isAnswered, { timeout: 100_000 }).toBe(false)
    const readiness = new Readiness(ours)
    readiness.serve()
    expect([readiness.reason, readiness.isNodeHeld]).toEqual(['store_unavailable', true])
    await postgres.restart()
    await expect.poll(() => ours.isAnswered, { timeout: 100_000 }).toBe(true)
  })
})
