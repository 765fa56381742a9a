import { approveBody, type Decision, type NewRecord, type Question } from '@airlock/contract'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ApprovalDesk } from './desk.ts'
import { ApprovalNews } from './news.ts'
import { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'
import type { AnyCaller, Caller } from '../app/caller.ts'
import { aRow } from '../monitor/testing/observed.ts'
import { defaultAgent } from '../identity/first-start.ts'
import { insertAgentIfAbsent } from '../store/agents.ts'
import { insertApiKey } from '../store/api-keys.ts'
import { listApprovals } from '../store/approvals.ts'
import { openStore, type Store, type StorePlace } from '../store/engine/store.ts'
import { insertSandbox } from '../store/sandboxes.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { ApprovalAnswers } from './approvals.ts'
import { as } from '../testing/registry.ts'
import { staged } from '../testing/staged.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const KEY = {
  hash: '0'.repeat(64),
  tenant: 'acme',
  role: 'admin',
  agents: null,
  purpose: null,
  createdAt: 0,
  expiresAt: null,
  revokedAt: null,
  name: 'test',
  platform: false,
  lastUsedAt: null,
  person: null,
} as const
const ONCE = approveBody.parse({})
const ADMIN = as()
const OPERATOR = as({ actor: 'key:operator', role: 'operator' })
const ASKER: Caller = as({ actor: 'key:asker', role: 'developer' })

/** Who made each key, and which it took over from. */
const KEYS: Readonly<Record<string, { readonly by: string; readonly replaces?: string; readonly person?: string }>> = {
  developer: { by: 'system' },
  admin: { by: 'system' },
  admin2: { by: 'key:admin', replaces: 'admin' },
  ann: { by: 'key:admin' },
  bob: { by: 'key:admin' },
  ann2: { by: 'key:ann' },
  ann3: { by: 'key:ann2' },
  annNext: { by: 'key:ann', replaces: 'ann' },
  annGiven: { by: 'key:admin', replaces: 'ann' },
  tokens: { by: 'jwt:eve' },
  // Siblings: one admin made them all.
  joan: { by: 'key:admin', person: 'joan' },
  joan2: { by: 'key:admin', person: 'joan' },
  jim: { by: 'key:admin', person: 'jim' },
  jimNext: { by: 'key:jim', replaces: 'jim', person: 'jim' },
  eve: { by: 'key:admin', person: 'eve' },
  ...Object.fromEntries(
    Array.from({ length: 70 }, (_, at) => [`far${at}`, { by: at === 0 ? 'key:ann' : `key:far${at - 1}` }]),
  ),
  // Rotated by themselves, every day for a quarter.
  ...rotations('asks', 'system'),
  ...rotations('answers', 'key:admin'),
}

function rotations(
  name: string,
  by: string,
): Readonly<Record<string, { readonly by: string; readonly replaces?: string }>> {
  const next = Array.from({ length: 90 }, (_, at) => [
    `${name}${at + 1}`,
    { by: `key:${name}${at}`, replaces: `${name}${at}` },
  ])
  return { [`${name}0`]: { by }, ...Object.fromEntries(next) }
}

/** 10,000 rotations of the key `often0`. */
const ROTATED_OFTEN = `
insert into api_keys (id, hash, tenant, role, created_at, name, platform, created_by, replaces)
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 10000)
select 'often' || n, '${KEY.hash}', 'acme', 'admin', 0, 'test', 0, 'key:often' || (n - 1), 'often' || (n - 1) from numbers`

/** Who asks, who answers, and whether that is let pass. */
const HANDS = [
  ['developer', 'admin', 'may'],
  ['ann', 'ann', 'may not'],
  ['ann', 'admin', 'may'],
  ['ann', 'admin2', 'may'],
  ['ann', 'bob', 'may'],
  ['ann2', 'ann', 'may'],
  ['ann', 'ann2', 'may not'],
  ['ann', 'ann3', 'may not'],
  ['ann', 'annNext', 'may not'],
  ['annNext', 'ann', 'may not'],
  ['annNext', 'annGiven', 'may not'],
  ['annNext', 'ann2', 'may not'],
  ['admin', 'ann', 'may not'],
  ['admin', 'annGiven', 'may not'],
  ['admin', 'ann3', 'may not'],
  ['admin2', 'bob', 'may not'],
  ['jwt:eve', 'tokens', 'may not'],
  ['tokens', 'jwt:eve', 'may'],
  ['jwt:eve', 'bob', 'may'],
  ['joan', 'joan2', 'may not'],
  ['joan2', 'joan', 'may not'],
  ['joan', 'jim', 'may'],
  ['joan', 'bob', 'may'],
  ['bob', 'joan', 'may'],
  ['joan', 'admin', 'may'],
  ['jim', 'jimNext', 'may not'],
  ['eve', 'jwt:eve', 'may not'],
  ['jwt:Eve', 'eve', 'may not'],
  ['eve', 'jwt:joan', 'may'],
  ['eve', 'tokens', 'may not'],
  ['bob', 'far69', 'may'],
  ['ann', 'far69', 'may not'],
  ['asks90', 'admin', 'may'],
  ['developer', 'answers90', 'may'],
  ['asks90', 'answers90', 'may'],
  ['asks90', 'asks0', 'may not'],
  ['asks0', 'asks90', 'may not'],
  ['admin', 'answers90', 'may not'],
] as const

const question: Question = {
  point: 'command.run',
  tenant: 'acme',
  actor: 'key:asker',
  role: 'developer',
  agent: 'a',
  sandbox: `sbx_${'0'.repeat(26)}`,
  operation: { kind: 'command', argv: ['tee', 'x'], cwd: '/workspace', env: ['A'], timeoutMs: 1000 },
}
const SANDBOX = `sbx_${'0'.repeat(26)}`
const ENDED = `sbx_${'2'.repeat(26)}`

/** What a program inside asks, as Guardian asks it. */
function inside(sandbox: string, body: { readonly action: string }): readonly [Partial<Question>, AnyCaller] {
  const actor = `sandbox:${sandbox}`
  const principal = { actor, tenant: 'acme', role: 'sandbox', agent: 'a', sandbox } as const
  const asked = { route: 'sandbox.ask', params: { sandbox }, query: null, body }
  const operation = { kind: 'other', payload: body } as const
  return [
    { point: 'sandbox.ask', actor, role: 'sandbox', sandbox, operation },
    { principal, requestId: 'req_1', asked },
  ]
}

const decision: Decision = {
  effect: 'ask',
  risk: 'high',
  conditions: {},
  policyVersion: 'house@1',
  rules: [{ policy: 'house', rule: 'tee', effect: 'ask', risk: 'high', reason: 'It writes.' }],
}

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let now: number
    let place: StorePlace
    let opened: Store[]
    let records: NewRecord[]
    /** Two servers on one store: neither hears the news of the other. */
    let here: Server
    let there: Server

    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => {
      now = Date.now()
      records = []
      place = await stores.make()
      opened = [await openStore(place), await openStore(place)]
      const [first, second] = opened.map((store) => serverOn(store))
      if (!first || !second) throw new TypeError('two stores, two servers')
      here = first
      there = second
    })
    afterEach(async () => {
      for (const store of opened) await store.close()
    })

    interface Server {
      readonly desk: ApprovalDesk
      readonly answers: ApprovalAnswers
    }

    /** Time goes by, also for a store with a clock of its own. */
    const pass = async (ms: number) => {
      now += ms
      if ('url' in place) await stores.run(place, `update approvals set expires_at = expires_at - ${ms}`)
    }

    function serverOn(store: Store): Server {
      const keep = (record: NewRecord) => void records.push(record)
      const audit = staged({ require: async (record) => keep(record), note: keep, flush: async () => {} })
      const news = new ApprovalNews()
      const ephemeral = new EphemeralSandboxes()
      const world = { store, audit, clock: { now: () => now }, failpoint: async () => {}, ephemeral }
      return {
        desk: new ApprovalDesk({ ...world, news }),
        answers: new ApprovalAnswers({ ...world, approvalNews: news }),
      }
    }

    const ask = async (server: Server, more: Partial<Question> = {}, asker: AnyCaller = ASKER) =>
      server.desk.settle(asker, { ...question, ...more }, decision).then(
        (settled) => (settled === 'again' ? settled : settled.effect),
        (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
      )
    const pending = async () => (await here.answers.list(ADMIN, { state: 'pending', limit: 10 })).items
    const only = async () => {
      const [one, ...others] = await pending()
      expect(others).toEqual([])
      return one?.id ?? ''
    }
    const points = (point: string) => records.filter((record) => record.point === point)

    it('asks a person once about requests that come at once to two servers', async () => {
      const all = await Promise.all([here, there, here, there].map(async (server) => ask(server)))
      expect(all).toEqual(Array(4).fill('approval_required'))
      expect(await pending()).toHaveLength(1)
    })

    it('takes one of two answers that come at once to two servers, and tells the other', async () => {
      for (let round = 0; round < 5; round++) {
        await ask(here, { actor: `key:asker-${round}` })
        const id = await only()
        const all = await Promise.allSettled([
          here.answers.approve(OPERATOR, id, ONCE),
          there.answers.reject(ADMIN, id, {}),
        ])
        const { state, answeredBy } = await here.answers.get(ADMIN, id)
        const outcomes = all.map((one) => (one.status === 'fulfilled' ? one.value.state : (one.reason as unknown)))
        const late = expect.objectContaining({ code: 'approval_ended' }) as unknown
        expect(outcomes).toEqual(state === 'approved' ? ['approved', late] : [late, 'rejected'])
        expect(answeredBy).toBe(state === 'approved' ? 'key:operator' : 'key:admin')
      }
    })

    it('lets one of two requests pass that come at once to two servers', async () => {
      for (let round = 0; round < 5; round++) {
        const more = { actor: `key:asker-${round}` }
        await ask(here, more)
        await here.answers.approve(OPERATOR, await only(), ONCE)
        const all = await Promise.all([ask(here, more), ask(there, more)])
        expect(all.filter((one) => one === 'allow')).toHaveLength(1)
        for (const { id } of await pending()) await here.answers.reject(OPERATOR, id, {})
      }
      expect(points('approval.use').filter(({ status }) => status === 'done')).toHaveLength(5)
    })

    it('sees an answer that another server took while it waits', async () => {
      const wait = { until: now + 60_000, signal: new AbortController().signal }
      const waiting = here.desk.settle({ ...ASKER, approvalWait: wait }, question, decision)
      await expect.poll(pending, { interval: 10 }).toHaveLength(1)
      await there.answers.approve(OPERATOR, await only(), ONCE)
      expect(await waiting).toBe('again')
      expect(await ask(here)).toBe('allow')
    })

    it('takes no answer after a quarter of an hour, and lets nothing pass a quarter of an hour after the answer', async () => {
      await ask(here)
      const late = await only()
      now += 15 * MINUTE
      await expect(here.answers.approve(OPERATOR, late, ONCE)).rejects.toMatchObject({ code: 'approval_ended' })
      expect((await here.answers.get(ADMIN, late)).state).toBe('expired')
      await ask(here)
      await here.answers.approve(OPERATOR, await only(), ONCE)
      now += 15 * MINUTE
      expect(await ask(here)).toBe('approval_required')
    })

    it('denies what was rejected until the ask would have expired', async () => {
      await ask(here)
      await here.answers.reject(OPERATOR, await only(), { note: 'no' })
      now += 15 * MINUTE - 1
      expect(await ask(here)).toBe('policy_denied')
      now += 1
      expect(await ask(here)).toBe('approval_required')
    })

    it('records once that an ask has expired, whichever server sees it', async () => {
      await ask(here)
      const id = await only()
      await pass(15 * MINUTE)
      await Promise.all([here.answers.expire(), there.answers.expire()])
      expect(points('approval.expire').map(({ payload }) => payload?.['approval'])).toEqual([id])
      expect((await here.answers.list(ADMIN, { state: 'expired', limit: 10 })).items).toHaveLength(1)
    })

    it('does not expire what was asked elsewhere by a clock that is wrong', async () => {
      await ask(here)
      now += DAY
      if ('url' in place) await there.answers.expire()
      now -= DAY
      expect(points('approval.expire')).toEqual([])
      await here.answers.approve(OPERATOR, await only(), ONCE)
    })

    it('forgets what has ended a week ago, and nothing else', async () => {
      await ask(here)
      await here.answers.approve(OPERATOR, await only(), { scope: 'agent' })
      await ask(here, { agent: 'b' })
      await here.answers.reject(OPERATOR, await only(), {})
      await pass(8 * 24 * 60 * MINUTE)
      await here.answers.prune()
      const filter = { tenant: 'acme', state: 'all', agents: null, before: undefined, limit: 10 } as const
      const rows = await opened[0]?.query((db) => listApprovals(db, filter))
      expect(rows?.map(({ state, agent }) => [state, agent])).toEqual([['approved', 'a']])
    })

    it('has no scope that does not fit what was asked', async () => {
      await ask(here, { sandbox: null, agent: null })
      const id = await only()
      const wrong = [
        { scope: 'sandbox' },
        { scope: 'agent' },
        { scope: 'until' },
        { scope: 'once', until: new Date(now + MINUTE).toISOString() },
        { scope: 'until', until: new Date(now).toISOString() },
        { scope: 'until', until: new Date(now + 31 * 24 * 60 * MINUTE).toISOString() },
      ]
      for (const body of wrong)
        await expect(here.answers.approve(OPERATOR, id, approveBody.parse(body))).rejects.toMatchObject({
          code: 'invalid_request',
        })
      expect(await only()).toBe(id)
    })

    it('approves nothing that is not recorded', async () => {
      await ask(here)
      const id = await only()
      const store = opened[0]
      if (!store) throw new TypeError('no store')
      const refuse = async () => Promise.reject(new Error('no evidence'))
      const refusing = new ApprovalAnswers({
        store,
        audit: staged({ require: refuse, note: () => {}, flush: async () => {} }),
        clock: { now: () => now },
        approvalNews: new ApprovalNews(),
      })
      await expect(refusing.approve(OPERATOR, id, ONCE)).rejects.toThrow('no evidence')
      expect(await only()).toBe(id)
    })

    it('takes eight asks of one sandbox, and those of others all the same', async () => {
      const asks = async (n: number, id = SANDBOX) => ask(here, ...inside(id, { action: `a${n}` }))
      for (let n = 0; n < 8; n++) expect(await asks(n)).toBe('approval_required')
      expect(await asks(8)).toBe('policy_denied')
      expect(await asks(3)).toBe('approval_required')
      expect(await asks(8, `sbx_${'1'.repeat(26)}`)).toBe('approval_required')
    })

    it('ends the ask of a program whose sandbox has ended', async () => {
      const [store] = opened
      await store?.query((db) => insertTenantIfAbsent(db, { id: 'acme', createdAt: 0 }))
      await store?.query((db) => insertAgentIfAbsent(db, { ...defaultAgent('acme', 1), id: 'a' }))
      for (const [id, state] of [
        [SANDBOX, 'active'],
        [ENDED, 'stopped'],
      ] as const) {
        await store?.query((db) => insertSandbox(db, { ...aRow({ state }), id, tenant: 'acme', agent: 'a' }))
        await ask(here, ...inside(id, { action: 'deploy' }))
      }
      await here.answers.expire()
      expect((await pending()).map(({ sandbox }) => sandbox)).toEqual([SANDBOX])
      expect(points('approval.expire').map(({ sandbox }) => sandbox)).toEqual([ENDED])
    })

    it('of a program is answered by another hand than the one that made its sandbox', async () => {
      const [store] = opened
      await store?.query((db) => insertTenantIfAbsent(db, { id: 'acme', createdAt: 0 }))
      await store?.query((db) => insertAgentIfAbsent(db, { ...defaultAgent('acme', 1), id: 'a' }))
      for (const id of ['developer', 'admin'])
        await store?.query((db) => insertApiKey(db, { ...KEY, id, createdBy: 'system', replaces: null }))
      const row = { ...aRow(), id: SANDBOX, tenant: 'acme', agent: 'a', actor: 'key:developer' }
      await store?.query((db) => insertSandbox(db, row))
      await ask(here, ...inside(SANDBOX, { action: 'deploy' }))
      const id = await only()
      await expect(here.answers.approve(as({ actor: 'key:developer' }), id, ONCE)).rejects.toMatchObject({
        code: 'forbidden',
      })
      expect(await here.answers.approve(as({ actor: 'key:admin' }), id, ONCE)).toMatchObject({ state: 'approved' })
    })

    it('is answered by another hand than the one that asked: who made a key counts', async () => {
      const [store] = opened
      await store?.query((db) => insertTenantIfAbsent(db, { id: 'acme', createdAt: 0 }))
      for (const [id, { by, replaces = null, person = null }] of Object.entries(KEYS))
        await store?.query((db) => insertApiKey(db, { ...KEY, id, createdBy: by, replaces, person }))
      const actorOf = (name: string) => (name.includes(':') ? name : `key:${name}`)
      for (const [at, [asker, answerer, may]] of HANDS.entries()) {
        const sandbox = `sbx_${String(at).padStart(26, '0')}`
        await ask(here, { actor: actorOf(asker), sandbox }, as({ actor: actorOf(asker) }))
        const [asked] = await pending()
        const answer = await here.answers.approve(as({ actor: actorOf(answerer) }), asked?.id ?? '', ONCE).then(
          () => 'may',
          (error: unknown) =>
            error instanceof Error && 'code' in error && error.code === 'forbidden' ? 'may not' : error,
        )
        expect([asker, answerer, answer]).toEqual([asker, answerer, may])
        now += 20 * MINUTE
        await here.answers.expire()
      }
    })

    it('is answered with an error of its own when a key was rotated too often', async () => {
      const [store] = opened
      await store?.query((db) => insertTenantIfAbsent(db, { id: 'acme', createdAt: 0 }))
      await store?.query((db) => insertApiKey(db, { ...KEY, id: 'often0', createdBy: 'system', replaces: null }))
      await store?.query((db) => sql.raw(ROTATED_OFTEN).execute(db))
      const asker = as({ actor: 'key:often9999' })
      await ask(here, { actor: 'key:often9999' }, asker)
      expect((await here.answers.approve(OPERATOR, await only(), ONCE)).state).toBe('approved')
      now += DAY
      await ask(here, { actor: 'key:often10000' }, as({ actor: 'key:often10000' }))
      await expect(here.answers.approve(OPERATOR, await only(), ONCE)).rejects.toMatchObject({
        code: 'key_line_too_long',
      })
    })
  })
