import { readdirSync } from 'node:fs'
import { Kysely } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { defaultAgent } from '../../identity/first-start.ts'
import { insertAgentIfAbsent } from '../agents.ts'
import { findAuditHead, putAuditHead } from '../audit-heads.ts'
import { endCommand, findCommand, insertCommand, type StoredCommand } from '../commands.ts'
import { migrate } from './migrate.ts'
import {
  countByState,
  countLiving,
  findSandbox,
  insertSandbox,
  listSandboxes,
  type SandboxFilter,
  type StoredSandbox,
  updateState,
  updateUse,
} from '../sandboxes.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'
import { openStore, type Store, type StorePlace } from './store.ts'
import { insertTenantIfAbsent } from '../tenants.ts'
import { ALL_DIALECTS, type TestStores } from '../testing/dialects.ts'

for (const dialect of ALL_DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let place: StorePlace
    let store: Store

    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())

    beforeEach(async () => {
      place = await stores.make()
      store = await openStore(place)
      await store.transaction(async (db) => {
        await insertTenantIfAbsent(db, { id: 'default', createdAt: 1 })
        for (const id of ['a', 'b']) await insertAgentIfAbsent(db, { ...defaultAgent('default', 1), id })
      })
    })

    afterEach(async () => store.close())

    describe('the schema', () => {
      it('goes up and down and up again', async () => {
        const other = await stores.make()
        const tables = () => stores.tables(other)
        const all =
          'agent_labels agents alerts api_keys approvals artifacts audit_heads budgets commands grants graphs job_logs job_queues jobs killed_sandboxes kills metric_details metric_points model_call_ends model_calls nodes policies reservations sandbox_labels sandbox_tokens sandboxes secrets sessions steps templates tenants tool_counts tools usage_facts webhooks'.split(
            ' ',
          )
        const db = new Kysely<object>('file' in other ? openSqlite(other.file) : openPostgres(other.url, 'migration'))
        await migrate(db, 'latest')
        expect(await tables()).toEqual(all)
        await migrate(db, 'nothing')
        expect(await tables()).toEqual([])
        await migrate(db, 'latest')
        expect(await tables()).toEqual(all)
        await db.destroy()
      })

      it('has steps without a gap in their numbers', async () => {
        const files = readdirSync(new URL('../migrations', import.meta.url)).sort()
        expect(files.map((name) => Number(name.slice(0, 4)))).toEqual(files.map((_, i) => i + 1))
        const names = await stores.run(place, 'select name from kysely_migration order by name')
        expect(names).toEqual(files.map((name) => name.replace('.ts', '')))
      })

      it('goes on from a store whose steps had other numbers', async () => {
        await store.close()
        for (const [now, before] of [
          ['0012-causes', '0013-causes'],
          ['0011-metrics', '0012-metrics'],
          ['0010-sandbox-tokens', '0011-sandbox-tokens'],
        ])
          await stores.run(place, `update kysely_migration set name = '${before}' where name = '${now}'`)
        store = await openStore(place)
        const names = await stores.run(place, "select name from kysely_migration where name like '0010%'")
        expect(names).toEqual(['0010-sandbox-tokens'])
      })

      /** Steps are undone from the last. */
      async function undoModelCalls(of: StorePlace): Promise<void> {
        await stores.run(of, 'alter table api_keys drop column person')
        await stores.run(of, "delete from kysely_migration where name = '0020-key-persons'")
        const tables = [
          'graphs',
          'tool_counts',
          'tools',
          'secrets',
          'artifacts',
          'model_call_ends',
          'job_logs',
          'job_queues',
          'jobs',
        ]
        for (const table of tables) await stores.run(of, `drop table ${table}`)
        for (const name of ['0024-runs', '0023-tools', '0022-artifacts', '0021-model-call-ends', '0019-jobs'])
          await stores.run(of, `delete from kysely_migration where name = '${name}'`)
        for (const column of ['models', 'model_limits'])
          await stores.run(of, `alter table sandboxes drop column ${column}`)
        for (const column of ['calls', 'tokens'])
          await stores.run(of, `alter table budgets drop column model_${column}_per_day`)
        for (const column of ['calls', 'charged_tokens'])
          await stores.run(of, `alter table usage_facts drop column ${column}`)
        await stores.run(of, "delete from kysely_migration where name = '0018-sandbox-models'")
        const columns = 'model upstream input_tokens output_tokens cache_read_tokens cache_write_tokens estimated'
        for (const column of columns.split(' ')) await stores.run(of, `alter table usage_facts drop column ${column}`)
        await stores.run(of, 'drop table model_calls')
        await stores.run(of, "delete from kysely_migration where name = '0017-model-calls'")
      }

      it('gives sandboxes from before doors had a column the door that all of them had', async () => {
        await store.query((db) => insertSandbox(db, row('1', { doors: [] })))
        await store.close()
        await undoModelCalls(place)
        await stores.run(place, 'alter table sandboxes drop column doors')
        await stores.run(place, "delete from kysely_migration where name = '0016-sandbox-doors'")
        store = await openStore(place)
        expect(await store.query((db) => findSandbox(db, 'sbx_1'))).toEqual(row('1', { doors: ['control'] }))
      })

      it('holds what was written when it is opened again', async () => {
        await store.query((db) => insertSandbox(db, row('1')))
        await store.close()
        store = await openStore(place)
        expect(await store.query((db) => findSandbox(db, 'sbx_1'))).toEqual(row('1'))
      })

      it('lets one living sandbox of an agent have a name, and any number of ended ones', async () => {
        const insert = (sandbox: StoredSandbox) => store.query((db) => insertSandbox(db, sandbox))
        await insert(row('1', { name: 'x' }))
        const refused = await insert(row('2', { name: 'x' })).catch((error: unknown) => error)
        expect(store.isTaken(refused)).toBe(true)
        await insert(row('3', { name: 'x', agent: 'b' }))
        await insert(row('4', { name: 'x', state: 'stopped' }))
        await insert(row('5', { name: 'x', state: 'error' }))
        await insert(row('6', { name: null }))
        await insert(row('7', { name: null }))
        await store.query((db) => updateState(db, { id: 'sbx_1', from: 'active', to: 'stopping' }, {}))
        expect(store.isTaken(await insert(row('8', { name: 'x' })).catch((error: unknown) => error))).toBe(true)
        await store.query((db) => updateState(db, { id: 'sbx_1', from: 'stopping', to: 'stopped' }, {}))
        await insert(row('9', { name: 'x' }))
        expect(await store.query((db) => countByState(db, 'here'))).toEqual(
          new Map([
            ['active', 4],
            ['error', 1],
            ['stopped', 2],
          ]),
        )
      })
    })

    describe('the store', () => {
      it('runs transactions one after another: what one decides holds until it is written', async () => {
        const claim = (n: number) =>
          store.transaction(async (db) => {
            if ((await countLiving(db, {})) >= 3) return false
            await insertSandbox(db, row(`${n}`))
            return true
          })
        const claimed = await Promise.all(Array.from({ length: 12 }, async (_, n) => claim(n)))
        expect(claimed.filter(Boolean)).toHaveLength(3)
      })

      it('writes the same sandbox and command once, for the answer to the first try may be lost', async () => {
        const sandbox = row('1', { labels: { a: 'b' } })
        for (let n = 0; n < 2; n++)
          await store.transaction(async (db) => {
            await insertSandbox(db, sandbox)
            await insertCommand(db, COMMAND)
          })
        expect(await store.query((db) => findSandbox(db, 'sbx_1'))).toEqual(sandbox)
        expect(await store.query((db) => findCommand(db, { sandbox: 'sbx_1', command: 'cmd_1' }))).toEqual(COMMAND)
      })

      it('takes a transaction back when its work throws, and goes on', async () => {
        const broken = store.transaction(async (db) => {
          await insertSandbox(db, row('1'))
          throw new TypeError('no')
        })
        await expect(broken).rejects.toThrow('no')
        expect(await store.query((db) => findSandbox(db, 'sbx_1'))).toBeUndefined()
      })

      it('keeps what runs at once out of the transactions of others', async () => {
        const inserted = Promise.withResolvers<void>()
        const goOn = Promise.withResolvers<void>()
        const undone = store.transaction(async (db) => {
          await insertSandbox(db, row('1'))
          inserted.resolve()
          await goOn.promise
          throw new TypeError('taken back')
        })
        await inserted.promise
        const seen = store.query((db) => findSandbox(db, 'sbx_1'))
        goOn.resolve()
        await expect(undone).rejects.toThrow('taken back')
        expect(await seen).toBeUndefined()
      })

      it('refuses a row whose JSON was damaged', async () => {
        await store.query((db) => insertSandbox(db, row('1')))
        await stores.run(place, `update sandboxes set limits = '{"memoryBytes":"all"}'`)
        await expect(store.query((db) => findSandbox(db, 'sbx_1'))).rejects.toThrow('memoryBytes')
      })
    })

    describe('sandboxes', () => {
      const filter: SandboxFilter = {
        tenant: 'default',
        agents: null,
        states: ['active'],
        name: undefined,
        labels: {},
        before: undefined,
        limit: 10,
      }
      const ids = async (asked: Partial<SandboxFilter>) =>
        (await store.query((db) => listSandboxes(db, { ...filter, ...asked }))).map(({ id }) => id)

      it('are listed newest first, page by page, by tenant, agent, state, name and labels', async () => {
        await store.transaction(async (db) => {
          await insertSandbox(db, row('1', { labels: { team: 'x', env: 'dev' } }))
          await insertSandbox(db, row('2', { labels: { team: 'x' }, name: 'named' }))
          await insertSandbox(db, row('3', { agent: 'b' }))
          await insertSandbox(db, row('4', { state: 'stopped' }))
        })
        expect(await ids({})).toEqual(['sbx_3', 'sbx_2', 'sbx_1'])
        expect(await ids({ limit: 2 })).toEqual(['sbx_3', 'sbx_2'])
        expect(await ids({ before: 'sbx_2' })).toEqual(['sbx_1'])
        expect(await ids({ agents: ['b'] })).toEqual(['sbx_3'])
        expect(await ids({ agents: [] })).toEqual([])
        expect(await ids({ states: ['stopped', 'error'] })).toEqual(['sbx_4'])
        expect(await ids({ name: 'named' })).toEqual(['sbx_2'])
        expect(await ids({ labels: { team: 'x' } })).toEqual(['sbx_2', 'sbx_1'])
        expect(await ids({ labels: { team: 'x', env: 'dev' } })).toEqual(['sbx_1'])
        expect(await ids({ tenant: 'other' })).toEqual([])
      })

      it('change their state only from the one that was seen', async () => {
        await store.query((db) => insertSandbox(db, row('1')))
        const move = { id: 'sbx_1', from: 'creating', to: 'active' } as const
        expect(await store.query((db) => updateState(db, move, {}))).toBeUndefined()
        const moved = await store.query((db) =>
          updateState(
            db,
            { ...move, from: 'active', to: 'stopping' },
            { endReason: 'ttl', error: { code: 'c', message: 'm' } },
          ),
        )
        expect(moved).toEqual(row('1', { state: 'stopping', endReason: 'ttl', error: { code: 'c', message: 'm' } }))
      })

      it('never lose time, in whatever order uses are written', async () => {
        await store.query((db) => insertSandbox(db, row('1', { lastActiveAt: 100, expiresAt: 200 })))
        await store.query((db) => updateUse(db, 'sbx_1', { lastActiveAt: 150, expiresAt: 300 }))
        await store.query((db) => updateUse(db, 'sbx_1', { lastActiveAt: 120, expiresAt: 250 }))
        expect(await store.query((db) => findSandbox(db, 'sbx_1'))).toMatchObject({ lastActiveAt: 150, expiresAt: 300 })
      })
    })

    it('lets the first end of a command count', async () => {
      const { exitCode, signal, timedOut, truncated, outputBytes, fullOutput, startedAt } = COMMAND
      const said = { truncated, outputBytes, fullOutput }
      const end = { exitCode, signal, timedOut, cause: 'exit', ...said, startedAt, endedAt: 9 } as const
      await store.query((db) => insertSandbox(db, row('1')))
      await store.query((db) => insertCommand(db, COMMAND))
      const first = { ...end, state: 'exited', exitCode: 3 } as const
      expect(await store.query((db) => endCommand(db, 'cmd_1', first))).toBe(true)
      expect(await store.query((db) => endCommand(db, 'cmd_1', { ...end, state: 'lost' }))).toBe(false)
      const found = await store.query((db) => findCommand(db, { sandbox: 'sbx_1', command: 'cmd_1' }))
      expect(found).toEqual({ ...COMMAND, ...first })
    })

    it('keeps the longest head of a chain', async () => {
      const head = (seq: number) => ({
        tenant: 'default',
        seq,
        hash: String(seq).padStart(64, '0'),
        ts: '2026-01-01T00:00:00Z',
        keyId: 'k',
        signature: 's',
      })
      await store.query((db) => putAuditHead(db, head(5), { node: 'here', storedAt: 1 }))
      await store.query((db) => putAuditHead(db, head(3), { node: 'here', storedAt: 2 }))
      expect(await store.query((db) => findAuditHead(db, { tenant: 'default', node: 'here' }))).toEqual(head(5))
      await store.query((db) => putAuditHead(db, head(8), { node: 'here', storedAt: 3 }))
      expect(await store.query((db) => findAuditHead(db, { tenant: 'default', node: 'here' }))).toEqual(head(8))
    })
  })

const COMMAND: StoredCommand = {
  id: 'cmd_1',
  tenant: 'default',
  agent: 'a',
  sandbox: 'sbx_1',
  argv: ['echo', 'ü'],
  cwd: '/workspace',
  state: 'running',
  exitCode: null,
  signal: null,
  timedOut: false,
  cause: null,
  truncated: false,
  outputBytes: 0,
  maxOutputBytes: 10,
  fullOutput: { bytes: 20, truncated: false },
  startedAt: 1,
  endedAt: null,
  actor: 'key:x',
  recorded: false,
  decision: { effect: 'allow', risk: 'low', rules: [], conditions: { maxTimeoutMs: 5 }, policyVersion: 'builtin@1' },
}

function row(n: string, of: Partial<StoredSandbox> = {}): StoredSandbox {
  return {
    id: `sbx_${n}`,
    tenant: 'default',
    agent: 'a',
    generation: 1,
    name: null,
    node: 'here',
    bootId: 'boot',
    template: 'base',
    image: null,
    state: 'active',
    labels: {},
    limits: {
      memoryBytes: 67_108_864,
      cpus: 0.5,
      pids: 16,
      diskBytes: 16_777_216,
      inodes: 65_536,
      openFiles: 4096,
      cpuSeconds: null,
    },
    ttlMs: 1000,
    idleMs: 1000,
    onIdle: 'terminate',
    maxPausedMs: 1000,
    pausedAt: null,
    pausedBy: null,
    createdAt: 1,
    lastActiveAt: 1,
    expiresAt: 2,
    endsAt: 3,
    endedAt: null,
    endReason: null,
    error: null,
    mounts: [],
    doors: ['control'],
    models: [],
    modelLimits: { calls: null, tokens: null, dollars: null, concurrentCalls: 16 },
    isolation: null,
    actor: 'key:x',
    recorded: false,
    ...of,
  }
}
