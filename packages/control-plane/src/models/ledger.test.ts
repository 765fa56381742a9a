import {
  type BudgetLimits,
  type CloseModelCall,
  type ModelLimits,
  modelLimits,
  type NewRecord,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { putSetLimits } from '../store/budgets.ts'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import { insertModelCall, listLostModelCalls, type StoredModelCall, sumHeldByCalls } from '../store/model-calls.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { sumSpent, sumSpentBySandbox, sumUsage } from '../store/usage.ts'
import { closeCall, openCall } from './ledger.ts'

const NOW = Date.parse('2026-11-16T23:59:00Z')
const MINUTE = 60_000
const DEFAULTS: BudgetLimits = {
  sandboxes: 3,
  memoryBytes: 1000,
  diskBytes: 1000,
  cpus: 2,
  computeSecondsPerDay: 10,
  dollarsPerDay: 1,
  modelCallsPerDay: 1000,
  modelTokensPerDay: 1_000_000,
}
/** Costs $0.25. */
const USED = { inputTokens: 100_000, outputTokens: 20_000, cacheReadTokens: 100_000, cacheWriteTokens: 10_000 }
/** The usage that a hostile upstream reports. */
const HUGE = { inputTokens: 1e15, outputTokens: 1e15, cacheReadTokens: 0, cacheWriteTokens: 0 }
const NONE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
const CONTEXT = 300_000
const OUTPUT = { route: 'chat', maxOutputTokens: 40_000 } as const
const PRICE = { input: 1_000_000, output: 5_000_000, cacheRead: 300_000, cacheWrite: 2_000_000 }

for (const dialect of DIALECTS)
  describe(`model calls on ${dialect.name}`, dialect.options, () => {
    let stores: TestStores
    let place: StorePlace
    let store: Store
    beforeAll(async () => {
      stores = await dialect.start()
    })
    afterAll(async () => stores?.stop())
    beforeEach(async () => {
      place = await stores.make()
      store = await openStore(place)
      await store.query((db) => insertTenantIfAbsent(db, { id: 'acme', createdAt: 1 }))
    })
    afterEach(async () => store.close())

    const open = async (of: Partial<StoredModelCall> = {}, caps: Partial<ModelLimits> = {}): Promise<string> => {
      const call = aCall(of)
      const sandbox = modelLimits.parse({ concurrentCalls: 256, ...caps })
      await store.transaction((db) => openCall(db, call, { defaults: DEFAULTS, sandbox, output: OUTPUT }))
      return call.id
    }
    const close = async (id: string, usage: CloseModelCall['usage'], at = NOW) =>
      store.transaction((db) => closeCall(db, id, { usage, at, contextOf: () => CONTEXT, recordOf }))
    const spent = async (agent: string | null = 'a', day = '2026-11-16') =>
      store.query(async (db) => ({
        spent: (await sumSpent(db, { tenant: 'acme', agent, day })).microDollars,
        held: (await sumHeldByCalls(db, { tenant: 'acme', agent, day })).microDollars,
      }))

    it('hold their ceiling while they are under way, and cost what the upstream reported', async () => {
      const id = await open({ ceilingMicroDollars: 600_000 })
      expect(await spent()).toEqual({ spent: 0, held: 600_000 })
      expect(await close(id, USED)).toMatchObject({ id, agent: 'a', microDollars: 250_000 })
      expect(await spent()).toEqual({ spent: 250_000, held: 0 })
    })

    it('are refused when their ceiling does not fit into what is left, with the sums', async () => {
      await close(await open({ ceilingMicroDollars: 600_000 }), USED)
      await open({ ceilingMicroDollars: 500_000 })
      await expect(open({ ceilingMicroDollars: 250_001 })).rejects.toMatchObject({
        code: 'budget_exhausted',
        message:
          'The call may cost $0.250001, and the agent a has $0.25 left today: $0.25 of $1 are spent, $0.5 are reserved ' +
          'for calls under way.',
        hint: expect.stringMatching(
          /^In the program, set max_tokens .* to 39999 .*: airlock budget set a --dollars 2$/,
        ),
      })
      await open({ ceilingMicroDollars: 250_000 })
    })

    it('are bounded by the budget of their tenant as well', async () => {
      const set = { limits: { dollarsPerDay: 0.5 }, at: NOW }
      await store.query((db) => putSetLimits(db, { tenant: 'acme', agent: null }, set))
      await open({ agent: 'a', ceilingMicroDollars: 300_000 })
      await expect(open({ agent: 'b', ceilingMicroDollars: 300_000 })).rejects.toThrow(
        'and the tenant acme has $0.2 left today',
      )
    })

    it('of a free model pass when nothing is left', async () => {
      await open({ ceilingMicroDollars: 1_000_000 })
      await open({ ceilingMicroDollars: 0 })
    })

    it('become one fact, however often their end is reported, and the first report holds', async () => {
      const id = await open({ ceilingMicroDollars: 600_000 })
      await close(id, USED)
      for (const late of [USED, 'unreported', 'unsent'] as const) expect(await close(id, late)).toBeUndefined()
      expect(await spent()).toEqual({ spent: 250_000, held: 0 })
    })

    it.each([
      ['unsent', 0],
      ['unreported', 600_000],
      [NONE, 0],
    ] as const)('that end as %j cost %d', async (usage, cost) => {
      await close(await open({ ceilingMicroDollars: 600_000 }), usage)
      expect(await spent()).toEqual({ spent: cost, held: 0 })
    })

    it('cost their ceiling when the usage is more than a full context above it', async () => {
      const most = { ...NONE, inputTokens: CONTEXT, outputTokens: 1000 }
      await close(await open({ ceilingMicroDollars: 600_000 }), most)
      expect(await spent()).toEqual({ spent: 305_000, held: 0 })
      for (const usage of [{ ...most, cacheReadTokens: 1 }, HUGE])
        expect(await close(await open({ ceilingMicroDollars: 100_000 }), usage)).toMatchObject({ usage: 'unreported' })
      expect(await spent()).toEqual({ spent: 505_000, held: 0 })
    })

    it('with the largest costs leave every sum readable, and the day is used up', async () => {
      const ceilings = { ceilingMicroDollars: 0, ceilingTokens: Number.MAX_SAFE_INTEGER }
      const dear = JSON.stringify({ ...PRICE, input: Number.MAX_SAFE_INTEGER })
      const limits = { modelTokensPerDay: Number.MAX_SAFE_INTEGER, dollarsPerDay: 1e9 }
      await store.query((db) => putSetLimits(db, { tenant: 'acme', agent: null }, { limits, at: NOW }))
      await store.query((db) => putSetLimits(db, { tenant: 'acme', agent: 'a' }, { limits, at: NOW }))
      const sandboxes = Array.from({ length: 3 }, (_, at) => `sbx_${at}`)
      await store.transaction(async (db) => {
        for (const sandbox of sandboxes)
          await insertModelCall(db, { ...aCall({ ...ceilings, id: sandbox, sandbox, price: dear }), day: '2026-11-16' })
      })
      expect(await store.query((db) => sumHeldByCalls(db, { tenant: 'acme', agent: 'a', day: '2026-11-16' }))).toEqual({
        calls: 3,
        tokens: Number.MAX_SAFE_INTEGER,
        microDollars: 0,
      })
      for (const id of sandboxes) await close(id, HUGE)
      expect(await spent()).toEqual({ spent: Number.MAX_SAFE_INTEGER, held: 0 })
      const filter = { tenant: 'acme', agents: null, from: undefined, to: undefined, limit: 10 }
      expect(await store.query((db) => sumUsage(db, filter))).toMatchObject([
        { calls: 3, inputTokens: 3 * HUGE.inputTokens, microDollars: Number.MAX_SAFE_INTEGER },
      ])
      expect(await store.query((db) => sumSpentBySandbox(db, 'sbx_1'))).toMatchObject({ tokens: 2e15 })
      await expect(open()).rejects.toMatchObject({ code: 'budget_exhausted' })
    })

    it('are paid by the day on which they began', async () => {
      const id = await open({ ceilingMicroDollars: 600_000 })
      await close(id, USED, NOW + 2 * MINUTE)
      expect(await spent()).toEqual({ spent: 250_000, held: 0 })
      expect(await spent('a', '2026-11-17')).toEqual({ spent: 0, held: 0 })
      await open({ ceilingMicroDollars: 1_000_000, openedAt: NOW + MINUTE })
    })

    it('are in the report of usage', async () => {
      await close(await open(), USED)
      await close(await open(), 'unreported')
      const filter = { tenant: 'acme', agents: null, from: undefined, to: undefined, limit: 10 }
      expect(await store.query((db) => sumUsage(db, filter))).toMatchObject([{ agent: 'a', microDollars: 350_000 }])
    })

    it('that nobody will report are found: over time, or of a doors process that is gone', async () => {
      const late = await open({ expiresAt: NOW })
      const orphan = await open({ doors: 'before' })
      await open({ node: 'other', doors: 'before' })
      await open()
      const lost = async (doors: string | null) => {
        const of = { node: 'here', now: NOW, doors, endedBefore: NOW, limit: 10 }
        const found = await store.query((db) => listLostModelCalls(db, of))
        return found.map(({ id }) => id).toSorted()
      }
      expect(await lost(null)).toEqual([late])
      expect(await lost('now')).toEqual([late, orphan].toSorted())
    })

    it.each([
      ['calls', { calls: 10 }, 'The sandbox may make 10 calls of models'],
      ['tokens', { tokens: 10_500 }, 'The sandbox may use 10500 tokens'],
      ['dollars', { dollars: 0.1 }, 'The sandbox may spend $0.1'],
      ['calls at once', { concurrentCalls: 10 }, 'The sandbox may have 10 calls of models at once'],
    ] as const)('stay within the cap on %s of their sandbox when 50 begin at once', async (_, caps, message) => {
      const of = { ceilingMicroDollars: 10_000, ceilingTokens: 1000 }
      const begun = await Promise.allSettled(Array.from({ length: 50 }, () => open(of, caps)))
      const refused = begun.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.message)] : []))
      expect([begun.length - refused.length, refused.length]).toEqual([10, 40])
      expect(refused.every((text) => text.startsWith(message))).toBe(true)
    })

    it.each([
      ['modelCallsPerDay', 10, '--model-calls 20', 'The agent a may make 10 calls of models a day'],
      ['modelTokensPerDay', 10_500, '--model-tokens 22000', 'The agent a may use 10500 tokens a day'],
    ] as const)('stay within %s of their agent when 50 begin at once', async (name, limit, option, message) => {
      await store.query((db) =>
        putSetLimits(db, { tenant: 'acme', agent: 'a' }, { limits: { [name]: limit }, at: NOW }),
      )
      const begun = await Promise.allSettled(
        Array.from({ length: 50 }, (_, i) => open({ ceilingMicroDollars: 0, sandbox: `sbx_${i}` })),
      )
      const refused = begun.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
      expect(begun.length - refused.length).toBe(10)
      expect(refused[0]).toMatchObject({ code: 'budget_exhausted', hint: expect.stringContaining(option) })
      expect(refused.every((error) => String(error.message).startsWith(message))).toBe(true)
    })

    it('that were not sent count in no budget; those without a report count with their ceiling', async () => {
      const caps = { calls: 2, tokens: 2500 }
      await close(await open({}, caps), 'unsent')
      await close(await open({}, caps), 'unreported')
      await close(await open({ ceilingTokens: 1500 }, caps), { ...NONE, inputTokens: 100 })
      await expect(open({}, caps)).rejects.toThrow('has made or begun 2')
      const { calls, tokens } = await store.query((db) => sumSpentBySandbox(db, 'sbx_1'))
      expect({ calls, tokens }).toEqual({ calls: 2, tokens: 1100 })
    })

    it('never cost more together than the budget, however many begin at once', async () => {
      const step = fc.record({ ceiling: fc.nat(400_000), share: fc.double({ min: 0, max: 1, noNaN: true }) })
      const steps = fc.array(step, { minLength: 1, maxLength: 20 })
      let runs = 0
      await fc.assert(
        fc.asyncProperty(steps, async (calls) => {
          const agent = `p${++runs}`
          await Promise.all(
            calls.map(async ({ ceiling, share }) => {
              const id = await open({ agent, ceilingMicroDollars: ceiling }).catch(() => undefined)
              if (id === undefined) return
              const used = { ...NONE, inputTokens: Math.floor(ceiling * share) }
              const end = share > 0.9 ? 'unreported' : used
              await close(id, end)
            }),
          )
          const { spent: cost, held } = await spent(agent)
          expect(held).toBe(0)
          expect(cost).toBeLessThanOrEqual(DEFAULTS.dollarsPerDay * 1e6)
        }),
        { numRuns: 10 },
      )
    })
  })

const recordOf = ({ tenant, agent, sandbox }: StoredModelCall): NewRecord => {
  const what = { point: 'model.call', status: 'done' } as const
  return { tenant, agent, sandbox, actor: 'test', ...what }
}

function aCall(of: Partial<StoredModelCall>): Omit<StoredModelCall, 'day'> {
  return {
    id: newId('cal'),
    node: 'here',
    doors: 'now',
    tenant: 'acme',
    agent: 'a',
    sandbox: 'sbx_1',
    model: 'small',
    upstream: 'main',
    price: JSON.stringify(PRICE),
    ceilingMicroDollars: 100_000,
    ceilingTokens: 1000,
    openedAt: NOW,
    expiresAt: NOW + MINUTE,
    ...of,
  }
}
