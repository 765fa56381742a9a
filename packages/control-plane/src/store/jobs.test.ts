import { submitJobBody } from '@airlock/contract'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openStore, type Store } from './engine/store.ts'
import { blockQueue, countInQueue, countQueued, leaseEnd, listCandidates, takeFirstJob } from './job-queues.ts'
import {
  changeRunningJob,
  deleteOldJobs,
  findJob,
  findJobByKey,
  insertJob,
  insertLog,
  listAbandonedJobs,
  listJobs,
  readLog,
  renewLeases,
  type StoredJob,
} from './jobs.ts'
import { insertTenantIfAbsent } from './tenants.ts'
import { DIALECTS, type TestStores } from './testing/dialects.ts'

const NOW = 1_000_000

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let store: Store
    let made = 0

    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => {
      store = await openStore(await stores.make())
      for (const id of ['acme', 'globex']) await store.query((db) => insertTenantIfAbsent(db, { id, createdAt: 1 }))
    })
    afterEach(async () => store.close())

    it('comes back as it was written, by id and by its idempotency key', async () => {
      const job = await add({ idempotencyKey: 'once', labels: { team: 'red' } })
      expect(await store.query((db) => findJob(db, job.id))).toEqual(job)
      expect(await store.query((db) => findJobByKey(db, { ...job, idempotencyKey: 'once' }))).toEqual(job)
      const again = store.query((db) => insertJob(db, { ...job, id: 'job_other' }))
      await expect(again).rejects.toSatisfy((error) => store.isTaken(error))
    })

    it('is listed by tenant, agent and state, newest first', async () => {
      const [a, b] = [await add(), await add({ agent: 'b' })]
      await add({ tenant: 'globex' })
      const list = async (agents: readonly string[] | null, state?: StoredJob['state']) => {
        const filter = { tenant: 'acme', agents, kind: 'job' as const, state, before: undefined, limit: 10 }
        return (await store.query((db) => listJobs(db, filter))).map(({ id }) => id)
      }
      expect([await list(null), await list(['b']), await list([]), await list(null, 'running')]).toEqual([
        [b.id, a.id],
        [b.id],
        [],
        [],
      ])
    })

    describe('the queue', () => {
      it('serves tenants in turn, however many jobs and agents one of them has', async () => {
        for (let n = 0; n < 20; n++) await add({ agent: `a${n % 5}` })
        for (let n = 0; n < 4; n++) await add({ tenant: 'globex', agent: 'z' })
        const tenants: string[] = []
        for (let n = 0; n < 8; n++) {
          const job = await claim()
          tenants.push(job?.tenant ?? 'none')
          // It ends at once, so that only who was served longest ago decides.
          if (job) await store.query((db) => changeRunningJob(db, job, { state: 'succeeded' }))
        }
        expect(tenants.filter((tenant) => tenant === 'globex')).toHaveLength(4)
      })

      it('prefers the tenant, then the agent, that runs fewest', async () => {
        for (let n = 0; n < 3; n++) await add({ agent: 'a' })
        await add({ agent: 'b' })
        await add({ tenant: 'globex', agent: 'z' })
        const served: string[] = []
        for (let n = 0; n < 5; n++) served.push((await claim())?.agent ?? 'none')
        expect(served).toEqual(['a', 'z', 'b', 'a', 'a'])
      })

      it('is first come, first served within an agent, and passes over what is not due or held back', async () => {
        const [later, first, second] = [await add({ notBefore: NOW + 1 }), await add(), await add()]
        expect([(await claim())?.id, (await claim())?.id, await claim()]).toEqual([first.id, second.id, undefined])
        await store.query((db) => blockQueue(db, later, NOW + 10))
        expect(await claim(NOW + 5)).toBeUndefined()
        expect((await claim(NOW + 10))?.id).toBe(later.id)
        expect(await store.query((db) => countQueued(db, 'acme'))).toBe(0)
      })

      it('gives no job to two claims at once', async () => {
        for (let n = 0; n < 10; n++) await add()
        const claimed = await Promise.all(Array.from({ length: 12 }, async () => claim()))
        const ids = claimed.flatMap((job) => (job ? [job.id] : []))
        expect([ids.length, new Set(ids).size]).toEqual([10, 10])
      })

      it('finds the next job by an index, whatever waits', async () => {
        if (dialect.name !== 'SQLite') return
        const { rows } = await store.query(async (db) =>
          sql<{ detail: string }>`explain query plan select id from jobs where state = 'queued' and tenant = 'acme'
            and agent = 'a' and not_before <= 1 order by not_before, id limit 1`.execute(db),
        )
        expect(rows.map(({ detail }) => detail)).toEqual([expect.stringContaining('jobs_of_queue')])
      })
    })

    it('is written only by the node and the try that run it', async () => {
      await add()
      const job = await claim()
      if (!job) throw new TypeError('nothing was claimed')
      const change = async (lease: Partial<StoredJob>) =>
        store.query((db) => changeRunningJob(db, { ...job, ...lease }, { sandbox: 'sbx_1' }))
      expect([await change({ node: 'there' }), await change({ tries: 2 }), await change({})]).toEqual([
        false,
        false,
        true,
      ])
    })

    it('is abandoned when its lease is over, for every node but its own', async () => {
      await add()
      const job = await claim()
      const abandoned = async (node: string, now: number) =>
        store.query((db) => listAbandonedJobs(db, { node, now: sql<number>`${now}`, limit: 10 }))
      expect(await abandoned('there', NOW + 100)).toEqual([])
      expect((await abandoned('there', NOW + 101)).map(({ id }) => id)).toEqual([job?.id])
      expect(await abandoned('here', NOW + 101)).toEqual([])
      await store.query((db) => renewLeases(db, { node: 'here', leaseUntil: leaseEnd(sql<number>`${NOW + 50}`, 100) }))
      expect(await abandoned('there', NOW + 101)).toEqual([])
    })

    it('keeps its log by byte, and loses both a while after its end', async () => {
      const { id } = await add({ state: 'succeeded', endedAt: NOW, recorded: true })
      const chunk = (start: number) => ({ start, attempt: 1, stream: 'stdout', base64: 'YWJj' }) as const
      await store.query((db) => insertLog(db, id, [chunk(0), chunk(3), chunk(6)]))
      await store.query((db) => insertLog(db, id, [chunk(6)]))
      const starts = async (from: number) =>
        (await store.query((db) => readLog(db, { job: id, from, limit: 10 }))).map(({ start }) => start)
      expect([await starts(0), await starts(5), await starts(6), await starts(99)]).toEqual([
        [0, 3, 6],
        [3, 6],
        [6],
        [6],
      ])
      await store.query((db) => deleteOldJobs(db, { endedBefore: NOW, limit: 10 }))
      expect(await starts(0)).toHaveLength(3)
      await store.query((db) => deleteOldJobs(db, { endedBefore: NOW + 1, limit: 10 }))
      expect([await starts(0), await store.query((db) => findJob(db, id))]).toEqual([[], undefined])
    })

    async function add(changes: Partial<StoredJob> = {}): Promise<StoredJob> {
      const row = { ...JOB, id: `job_${String(++made).padStart(4, '0')}`, ...changes }
      await store.transaction(async (db) => {
        await insertJob(db, row)
        if (row.state === 'queued') await countInQueue(db, row, 1)
      })
      return row
    }

    async function claim(now = NOW): Promise<StoredJob | undefined> {
      const leaseUntil = leaseEnd(sql<number>`${now}`, 100)
      return store.transaction(async (db) => {
        for (const queue of await listCandidates(db, { now, limit: 10 })) {
          const job = await takeFirstJob(db, queue, { node: 'here', now, leaseUntil })
          if (job) return job
        }
        return undefined
      })
    }
  })

const PRINCIPAL = { actor: 'key:a', tenant: 'acme', role: 'developer', agents: null, platform: false } as const

const JOB: StoredJob = {
  id: 'job_1',
  tenant: 'acme',
  agent: 'a',
  actor: 'key:a',
  state: 'queued',
  spec: { body: submitJobBody.parse({ argv: ['true'] }), principal: PRINCIPAL },
  labels: {},
  argv: ['true'],
  language: null,
  template: 'base',
  sha256: '0'.repeat(64),
  idempotencyKey: null,
  fingerprint: '0'.repeat(64),
  timeoutMs: 1000,
  queueMs: 1000,
  queueEndsAt: NOW + 1000,
  retries: 0,
  retryDelayMs: 0,
  tries: 0,
  notBefore: NOW,
  node: null,
  leaseUntil: null,
  sandbox: null,
  command: null,
  cancelAt: null,
  cancelBy: null,
  hasResult: false,
  exitCode: null,
  signal: null,
  cause: null,
  error: null,
  truncated: false,
  artifacts: null,
  resourceUsage: null,
  provenance: null,
  logBytes: 0,
  logStart: 0,
  run: null,
  result: null,
  createdAt: NOW,
  startedAt: null,
  endedAt: null,
  endNode: null,
  recorded: false,
}
