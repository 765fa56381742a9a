import { type BudgetLimits, BOUNDS } from '@airlock/contract'
import { newId } from '@airlock/std'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest'
import { findReservation, putSetLimits, releaseReservation, sumHeld } from '../store/budgets.ts'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { COMPUTE, insertUsageFact } from '../store/usage.ts'
import { type Asking, dayOf, limitsOf, type NodeCapacity, reserve } from './reserve.ts'

const NOW = Date.parse('2026-11-16T12:00:00Z')
const LIMITS: BudgetLimits = {
  sandboxes: 3,
  memoryBytes: 1000,
  diskBytes: 1000,
  cpus: 2,
  computeSecondsPerDay: 10,
  dollarsPerDay: 1,
  modelCallsPerDay: 1000,
  modelTokensPerDay: 1_000_000,
}
const ROOMY: NodeCapacity = { sandboxes: 1000, memoryBytes: 1e9, diskBytes: 1e9, isDiskFull: false, cpus: 1000 }
const TINY = { memoryBytes: 1, diskBytes: 1, cpus: 0.1 } as const

for (const dialect of DIALECTS)
  describe(`budgets on ${dialect.name}`, dialect.options, () => {
    let stores: TestStores
    let place: StorePlace
    let store: Store
    beforeAll(async () => {
      stores = await dialect.start()
    }, 60_000)
    afterAll(async () => stores?.stop())
    beforeEach(async () => {
      place = await stores.make()
      store = await openStore(place)
      for (const id of ['acme', 'globex']) await store.query((db) => insertTenantIfAbsent(db, { id, createdAt: 1 }))
    })
    afterEach(async () => store.close())

    const ask = async (of: Partial<Asking> = {}, capacity = ROOMY, by = store): Promise<string> => {
      const asking = anAsking(of)
      await by.transaction((db) => reserve(db, asking, { defaults: LIMITS, capacity }))
      return asking.sandbox
    }
    const held = (agent: string | null = 'a') => store.query((db) => sumHeld(db, { tenant: 'acme', agent }))

    it('are reserved until the last is gone, and name the limit that refuses', async () => {
      for (let i = 0; i < 3; i++) await ask()
      await expect(ask()).rejects.toMatchObject({
        code: 'budget_exhausted',
        status: 402,
        retryable: false,
        message: 'The agent a may have 3 sandboxes at once, and has 3.',
        hint: 'End one (airlock ls, airlock terminate SANDBOX), or raise it with the admin key: airlock budget set a --sandboxes 4',
      })
      expect(await held()).toEqual({ sandboxes: 3, memoryBytes: 30, diskBytes: 60, cpuMillis: 300 })
    })

    it.each([
      [
        'memoryBytes',
        { ...TINY, memoryBytes: 2 ** 30 },
        '1000 B of memory: 0 B are taken, and 1 GiB more were asked for',
        '--memory 1024m',
      ],
      [
        'diskBytes',
        { ...TINY, diskBytes: 2 ** 20 + 1 },
        '1000 B of disk: 0 B are taken, and 1.0 MiB more were asked for',
        '--disk 2m',
      ],
      ['cpus', { ...TINY, cpus: 2.1 }, '2 cpus: 0 are taken, and 2.1 more were asked for', '--cpus 2.1'],
    ])('refuse what one sandbox alone asks for beyond %s', async (_name, limits, why, option) => {
      await expect(ask({ limits })).rejects.toMatchObject({
        message: `The agent a may use ${why}.`,
        hint: `Ask for less, or raise it with the admin key: airlock budget set a ${option}`,
      })
      expect(await held()).toEqual({ sandboxes: 0, memoryBytes: 0, diskBytes: 0, cpuMillis: 0 })
    })

    it('give tenths of a processor to the last, without losing one by rounding', async () => {
      await store.query((db) => putSetLimits(db, { tenant: 'acme', agent: 'a' }, set({ sandboxes: 100, cpus: 0.3 })))
      for (let i = 0; i < 3; i++) await ask({ limits: TINY })
      await expect(ask({ limits: TINY })).rejects.toMatchObject({ code: 'budget_exhausted' })
    })

    it('are those of the agent and of its tenant: what fits the one may be too much for the other', async () => {
      await store.query((db) => putSetLimits(db, { tenant: 'acme', agent: null }, set({ sandboxes: 2 })))
      await ask({ agent: 'a' })
      await ask({ agent: 'b' })
      await expect(ask({ agent: 'c' })).rejects.toMatchObject({
        message: 'The tenant acme may have 2 sandboxes at once, and has 2.',
        hint: expect.stringContaining('airlock budget set acme --tenant --sandboxes 3') as unknown,
      })
      await ask({ tenant: 'globex' })
    })

    it('have defaults where nothing is set, ten times as large for a tenant', async () => {
      await store.query((db) =>
        putSetLimits(db, { tenant: 'acme', agent: 'a' }, set({ cpus: 7.5, dollarsPerDay: 0.25 })),
      )
      const of = (agent: string | null) => store.query((db) => limitsOf(db, { tenant: 'acme', agent }, LIMITS))
      expect(await of('a')).toEqual({ ...LIMITS, cpus: 7.5, dollarsPerDay: 0.25 })
      expect(await of('b')).toEqual(LIMITS)
      expect(await of(null)).toEqual(
        Object.fromEntries(Object.entries(LIMITS).map(([name, limit]) => [name, limit * BOUNDS.tenantShare])),
      )
    })

    it('refuse an agent that used up its compute seconds of the day, until the next day', async () => {
      const used = { ...COMPUTE, key: 's/1', tenant: 'acme', agent: 'a', sandbox: 's', day: dayOf(NOW) }
      const amounts = { wallMs: 1, cpuMs: 10_000, computeMs: 10_000, at: NOW }
      await store.query((db) => insertUsageFact(db, { ...used, ...amounts }))
      await expect(ask()).rejects.toMatchObject({
        message: 'The agent a has used up its 10 compute seconds of today.',
        hint: 'Wait for tomorrow (UTC), or raise it with the admin key: airlock budget set a --compute-seconds 20',
      })
      await ask({ agent: 'b' })
      await ask({ now: NOW + 24 * 3_600_000 })
    })

    it('refuse an agent that used up its dollars of the day, or those of its tenant, until the next day', async () => {
      const spend = async (agent: string, microDollars: number) => {
        const used = {
          ...COMPUTE,
          source: 'model',
          key: `${agent}/1`,
          tenant: 'acme',
          agent,
          sandbox: 's',
          day: dayOf(NOW),
        }
        const amounts = { wallMs: 0, cpuMs: 0, computeMs: 0, microDollars, at: NOW }
        await store.query((db) => insertUsageFact(db, { ...used, ...amounts }))
      }
      await spend('a', 999_999)
      await ask()
      await spend('b', 1_000_000)
      await expect(ask({ agent: 'b' })).rejects.toMatchObject({
        code: 'budget_exhausted',
        message: 'The agent b has used up its 1 dollars of today.',
      })
      await ask({ agent: 'b', now: NOW + 24 * 3_600_000 })
      await store.query((db) => putSetLimits(db, { tenant: 'acme', agent: null }, set({ dollarsPerDay: 1.999_999 })))
      await expect(ask({ agent: 'c' })).rejects.toMatchObject({
        message: 'The tenant acme has used up its 1.999999 dollars of today.',
      })
    })

    it('without a dollar are no obstacle to what spends none', async () => {
      await store.query((db) => putSetLimits(db, { tenant: 'acme', agent: 'a' }, set({ dollarsPerDay: 0 })))
      await ask()
    })

    it.each([
      ['sandboxes', { ...ROOMY, sandboxes: 1 }],
      ['memory', { ...ROOMY, memoryBytes: 19 }],
      ['disk', { ...ROOMY, diskBytes: 39 }],
      ['processors', { ...ROOMY, cpus: 0.19 }],
    ])('refuse for a while when the node has no %s left', async (what, capacity) => {
      await ask({ tenant: 'globex' }, capacity)
      await expect(ask({}, capacity)).rejects.toMatchObject({
        code: 'capacity_exhausted',
        retryAfterS: 5,
        message: `The node has promised all of its ${what}.`,
      })
      await ask({ node: 'other' }, capacity)
    })

    it('say so when the node never has that much, and when its host has only its reserve left', async () => {
      await expect(ask({}, { ...ROOMY, diskBytes: 19 })).rejects.toMatchObject({
        code: 'capacity_exhausted',
        message: 'The node has less disk than that in all.',
      })
      await expect(ask({}, { ...ROOMY, isDiskFull: true })).rejects.toMatchObject({ code: 'host_disk_full' })
    })

    it('count a try once whose answer was lost, and are free again once it is released', async () => {
      const asking = anAsking({ limits: { memoryBytes: 1000, diskBytes: 1000, cpus: 2 } })
      const rules = {
        defaults: LIMITS,
        capacity: { ...ROOMY, sandboxes: 1, memoryBytes: 1000, diskBytes: 1000, cpus: 2 },
      }
      for (let i = 0; i < 2; i++) await store.transaction((db) => reserve(db, asking, rules))
      expect(await held()).toEqual({ sandboxes: 1, memoryBytes: 1000, diskBytes: 1000, cpuMillis: 2000 })
      for (let i = 0; i < 2; i++) await store.transaction((db) => releaseReservation(db, asking.sandbox))
      expect(await held()).toEqual({ sandboxes: 0, memoryBytes: 0, diskBytes: 0, cpuMillis: 0 })
      expect(await store.query((db) => findReservation(db, asking.sandbox))).toBeUndefined()
    })

    it('are never exceeded, whoever asks and releases at the same time', async () => {
      const other = await openStore(place)
      const rules = {
        defaults: LIMITS,
        capacity: { ...ROOMY, sandboxes: 6, memoryBytes: 2500, diskBytes: 2000, cpus: 5 },
      }
      const run = async (deeds: readonly Deed[]): Promise<void> => {
        const living: string[] = []
        await Promise.all(
          deeds.map(async (deed, i) => {
            const by = i % 2 === 0 ? store : other
            if (deed.kind === 'end') {
              const sandbox = living.shift()
              if (sandbox !== undefined) await by.transaction((db) => releaseReservation(db, sandbox))
              return
            }
            const asking = anAsking(deed)
            const isRefused = await by.transaction((db) => reserve(db, asking, rules)).then(() => false, expectRefusal)
            if (isRefused) return
            living.push(asking.sandbox)
            await expectWithin(by, rules)
          }),
        )
        await expectWithin(store, rules)
        for (const sandbox of living) await store.transaction((db) => releaseReservation(db, sandbox))
        expect(await store.query((db) => sumHeld(db, { node: 'here' }))).toMatchObject({ sandboxes: 0 })
      }
      try {
        await fc.assert(fc.asyncProperty(fc.array(DEED, { minLength: 8, maxLength: 24 }), run), { numRuns: 15 })
      } finally {
        await other.close()
      }
    }, 60_000)
  })

type Deed =
  | { readonly kind: 'end' }
  | { readonly kind: 'ask'; readonly tenant: string; readonly agent: string; readonly limits: Asking['limits'] }

const DEED: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      tenant: fc.constantFrom('acme', 'globex'),
      agent: fc.constantFrom('a', 'b'),
      limits: fc.record({
        memoryBytes: fc.integer({ min: 1, max: 600 }),
        diskBytes: fc.integer({ min: 1, max: 600 }),
        cpus: fc.integer({ min: 1, max: 15 }).map((tenths) => tenths / 10),
      }),
    }),
  },
)

async function expectWithin(
  store: Store,
  rules: { readonly defaults: BudgetLimits; readonly capacity: NodeCapacity },
): Promise<void> {
  for (const tenant of ['acme', 'globex'])
    for (const agent of ['a', 'b'])
      expectAtMost(await store.query((db) => sumHeld(db, { tenant, agent })), rules.defaults)
  expectAtMost(await store.query((db) => sumHeld(db, { node: 'here' })), rules.capacity)
}

function expectAtMost(held: Awaited<ReturnType<typeof sumHeld>>, most: Omit<NodeCapacity, 'isDiskFull'>): void {
  expect(held.sandboxes).toBeLessThanOrEqual(most.sandboxes)
  expect(held.memoryBytes).toBeLessThanOrEqual(most.memoryBytes)
  expect(held.diskBytes).toBeLessThanOrEqual(most.diskBytes)
  expect(held.cpuMillis).toBeLessThanOrEqual(most.cpus * 1000)
}

/** Anything but a refusal is a failure. */
function expectRefusal(error: unknown): true {
  expect(['budget_exhausted', 'capacity_exhausted']).toContain(Object(error).code)
  return true
}

function anAsking(of: Partial<Asking>): Asking {
  const who = { tenant: 'acme', agent: 'a', node: 'here' }
  const ids = { reservation: newId('rsv'), sandbox: newId('sbx') }
  return { ...who, ...ids, limits: { memoryBytes: 10, diskBytes: 20, cpus: 0.1 }, now: NOW, ...of }
}

function set(limits: Partial<BudgetLimits>) {
  return { limits, at: NOW }
}
