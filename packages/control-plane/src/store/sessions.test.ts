import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { insertAgentIfAbsent, type StoredAgent } from './agents.ts'
import { insertSandbox, type StoredSandbox, updateState } from './sandboxes.ts'
import {
  countRestart,
  endSession,
  endSessionsOf,
  findSession,
  insertSession,
  listDueSessions,
  listOutlived,
  listOwedSessions,
  listSessions,
  type SessionFilter,
  setSessionsRecorded,
  type StoredSession,
  updateRuntime,
  updateSessionUse,
} from './sessions.ts'
import {
  deleteStep,
  endStep,
  findStep,
  findStepByKey,
  insertStep,
  listOwedSteps,
  listSteps,
  listUnendedSteps,
  loseStepsOf,
  setStepsRecorded,
  type StoredStep,
} from './steps.ts'
import { openStore, type Store } from './engine/store.ts'
import { insertTenantIfAbsent } from './tenants.ts'
import { ALL_DIALECTS, type TestStores } from './testing/dialects.ts'

for (const dialect of ALL_DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let stores: TestStores
    let store: Store

    beforeAll(async () => (stores = await dialect.start()))
    afterAll(() => stores?.stop())
    beforeEach(async () => {
      store = await openStore(await stores.make())
      await store.transaction(async (db) => {
        await insertTenantIfAbsent(db, { id: 'default', createdAt: 1 })
        await insertAgentIfAbsent(db, AGENT)
        await insertSandbox(db, SANDBOX)
        await insertSandbox(db, { ...SANDBOX, id: 'sbx_2', node: 'there' })
        await insertSession(db, SESSION)
      })
    })
    afterEach(async () => store.close())

    const filter: SessionFilter = {
      tenant: 'default',
      agents: null,
      states: ['active'],
      sandbox: undefined,
      before: undefined,
      limit: 10,
    }

    describe('a session', () => {
      it('comes back as it was written, and writing it again changes nothing', async () => {
        await store.query((db) => insertSession(db, { ...SESSION, labels: { other: 'x' } }))
        expect(await store.query((db) => findSession(db, 'ses_1'))).toEqual(SESSION)
      })

      it('is listed newest first, by tenant, agent, sandbox and state, once it was opened', async () => {
        for (const changes of [
          { id: 'ses_2', agent: 'b' },
          { id: 'ses_3', tenant: 'other' },
          { id: 'ses_4', runtimeVersion: '' },
          { id: 'ses_5', state: 'expired', sandbox: 'sbx_2' },
        ] as const)
          await store.query((db) => insertSession(db, { ...SESSION, ...changes }))
        const ids = async (asked: Partial<SessionFilter>) =>
          (await store.query((db) => listSessions(db, { ...filter, ...asked }))).map(({ id }) => id)
        expect(await ids({})).toEqual(['ses_2', 'ses_1'])
        expect(await ids({ limit: 1 })).toEqual(['ses_2'])
        expect(await ids({ before: 'ses_2' })).toEqual(['ses_1'])
        expect(await ids({ agents: ['b'] })).toEqual(['ses_2'])
        expect(await ids({ agents: [] })).toEqual([])
        expect(await ids({ states: ['active', 'expired'], sandbox: 'sbx_2' })).toEqual(['ses_5'])
      })

      it('is due on its node when its time is over, or when it was never opened', async () => {
        await store.query((db) => insertSession(db, { ...SESSION, id: 'ses_2', runtimeVersion: '', expiresAt: 900 }))
        await store.query((db) => insertSession(db, { ...SESSION, id: 'ses_3', sandbox: 'sbx_2' }))
        const due = async (now: number) =>
          (await store.query((db) => listDueSessions(db, { node: 'here', now, limit: 10 }))).map(({ id }) => id)
        expect([await due(99), await due(100)]).toEqual([['ses_2'], ['ses_1', 'ses_2']])
        await store.query((db) => updateSessionUse(db, 'ses_1', { lastActiveAt: 50, expiresAt: 200 }))
        await store.query((db) => updateSessionUse(db, 'ses_1', { lastActiveAt: 40, expiresAt: 150 }))
        expect(await due(199)).toEqual(['ses_2'])
        expect(await store.query((db) => findSession(db, 'ses_1'))).toMatchObject({ lastActiveAt: 50, expiresAt: 200 })
      })

      it('ends once, and its record is owed until it is paid', async () => {
        const end = { state: 'expired', endReason: 'ttl', endedAt: 7 } as const
        expect(await store.query((db) => endSession(db, 'ses_1', end))).toEqual({ ...SESSION, ...end })
        expect(await store.query((db) => endSession(db, 'ses_1', { ...end, endedAt: 8 }))).toBeUndefined()
        expect(await store.query((db) => updateRuntime(db, 'ses_1', { runtimeVersion: 'x', restarts: 1 }))).toBe(
          undefined,
        )
        const owed = () => store.query((db) => listOwedSessions(db, { node: 'here', after: '', limit: 9 }))
        expect(await owed()).toEqual([{ ...SESSION, ...end }])
        await store.query((db) => setSessionsRecorded(db, ['ses_1']))
        expect(await owed()).toEqual([])
      })

      it('counts its restarts and says what answers', async () => {
        await store.query((db) => updateRuntime(db, 'ses_1', { runtimeVersion: 'Python 4', restarts: 2 }))
        await store.query((db) => countRestart(db, 'ses_1'))
        expect(await store.query((db) => findSession(db, 'ses_1'))).toMatchObject({
          runtimeVersion: 'Python 4',
          restarts: 3,
        })
      })

      it('ends with its sandbox, and a sandbox that outlives the one it was made for is found', async () => {
        await store.query((db) => insertSession(db, { ...SESSION, id: 'ses_2', state: 'expired', ownsSandbox: true }))
        const outlived = async () =>
          (await store.query((db) => listOutlived(db, { node: 'here', limit: 9 }))).map(({ id }) => id)
        expect(await outlived()).toEqual(['ses_2'])
        expect(await store.query((db) => endSessionsOf(db, 'sbx_1', 9))).toEqual([
          { ...SESSION, state: 'terminated', endReason: 'sandbox_ended', endedAt: 9 },
        ])
        await store.query((db) => updateState(db, { id: 'sbx_1', from: 'active', to: 'stopped' }, {}))
        expect(await outlived()).toEqual([])
      })
    })

    describe('a step', () => {
      const take = (changes: Partial<StoredStep> = {}) => store.query((db) => insertStep(db, { ...STEP, ...changes }))

      it('comes back as it was written, by our id and by that of the caller', async () => {
        const usage = { cpuMs: 1.5, memoryPeakBytes: null }
        const error = { name: 'E', message: 'ü', traceback: 't' }
        const row = { ...STEP, usage, error, restarted: true, truncated: true }
        expect(await store.query((db) => insertStep(db, row))).toBe(true)
        expect(await store.query((db) => findStep(db, { session: 'ses_1', step: 'stp_1' }))).toEqual(row)
        expect(await store.query((db) => findStepByKey(db, { session: 'ses_1', stepId: 'mine' }))).toEqual(row)
        expect(await store.query((db) => findStep(db, { session: 'ses_2', step: 'stp_1' }))).toBeUndefined()
      })

      it('takes the id of the caller once in a session, and writing it again is not another', async () => {
        expect([await take(), await take(), await take({ id: 'stp_2' })]).toEqual([true, true, false])
        await store.query((db) => insertSession(db, { ...SESSION, id: 'ses_2' }))
        expect(await take({ id: 'stp_3', session: 'ses_2' })).toBe(true)
        await store.query((db) => deleteStep(db, 'stp_1'))
        expect(await take({ id: 'stp_2' })).toBe(true)
      })

      it('takes an id once when many come at once', async () => {
        const ids = Array.from({ length: 8 }, (_, at) => `stp_${at}`)
        const taken = await Promise.all(ids.map((id) => take({ id })))
        expect(taken.filter(Boolean)).toHaveLength(1)
      })

      it('ends once, and its record is owed until it is paid', async () => {
        await take()
        const unended = async () => (await store.query((db) => listUnendedSteps(db, 'here'))).map(({ id }) => id)
        expect([await unended(), await store.query((db) => listUnendedSteps(db, 'there'))]).toEqual([['stp_1'], []])
        const end = {
          status: 'failed',
          error: { name: 'E', message: 'm', traceback: '' },
          cause: 'exit',
          restarted: true,
          truncated: true,
          outputBytes: 4,
          usage: { cpuMs: 1, memoryPeakBytes: 2 },
          startedAt: 2,
          endedAt: 3,
        } as const
        expect(await store.query((db) => endStep(db, 'stp_1', end))).toBe(true)
        expect(await store.query((db) => endStep(db, 'stp_1', { ...end, status: 'completed' }))).toBe(false)
        expect(await unended()).toEqual([])
        const owed = () => store.query((db) => listOwedSteps(db, { node: 'here', after: '', limit: 9 }))
        expect(await owed()).toEqual([{ ...STEP, ...end }])
        await store.query((db) => setStepsRecorded(db, ['stp_1']))
        expect(await owed()).toEqual([])
      })

      it('is lost with its sandbox while it runs, and listed newest first', async () => {
        for (const id of ['stp_1', 'stp_2']) await take({ id, stepId: id })
        await take({ id: 'stp_3', stepId: 'stp_3', status: 'completed' })
        const error = { name: 'Gone', message: '', traceback: '' }
        const lost = await store.query((db) => loseStepsOf(db, 'sbx_1', { at: 5, error, cause: 'sandbox_ended' }))
        const shown = lost.map(({ id, status, endedAt, cause }) => `${id} ${status} ${endedAt} ${cause}`)
        expect(shown.toSorted()).toEqual(['stp_1 failed 5 sandbox_ended', 'stp_2 failed 5 sandbox_ended'])
        const page = await store.query((db) => listSteps(db, { session: 'ses_1', before: 'stp_3', limit: 2 }))
        expect(page.map(({ id }) => id)).toEqual(['stp_2', 'stp_1'])
      })
    })
  })

const AGENT: StoredAgent = {
  tenant: 'default',
  id: 'a',
  state: 'idle',
  generation: 1,
  approved: true,
  version: null,
  labels: {},
  metadata: {},
  owner: 'key:x',
  createdAt: 1,
  updatedAt: 1,
  lastSeenAt: null,
  deletedAt: null,
}

const SANDBOX: StoredSandbox = {
  id: 'sbx_1',
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
  mounts: [],
  doors: ['control'],
  models: [],
  modelLimits: { calls: null, tokens: null, dollars: null, concurrentCalls: 16 },
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
  isolation: null,
  actor: 'key:x',
  recorded: false,
}

const SESSION: StoredSession = {
  id: 'ses_1',
  tenant: 'default',
  agent: 'a',
  sandbox: 'sbx_1',
  ownsSandbox: false,
  runtime: 'python',
  runtimeVersion: 'Python 3',
  state: 'active',
  labels: { team: 'ü' },
  ttlMs: 1000,
  restarts: 0,
  createdAt: 1,
  lastActiveAt: 1,
  expiresAt: 100,
  endedAt: null,
  endReason: null,
  actor: 'key:x',
  recorded: false,
}

const STEP: StoredStep = {
  id: 'stp_1',
  tenant: 'default',
  agent: 'a',
  sandbox: 'sbx_1',
  session: 'ses_1',
  stepId: 'mine',
  codeHash: 'hash',
  status: 'accepted',
  error: null,
  cause: null,
  restarted: false,
  truncated: false,
  outputBytes: 0,
  maxOutputBytes: 10,
  usage: null,
  startedAt: 1,
  endedAt: null,
  actor: 'key:x',
  recorded: false,
  decision: { effect: 'allow', risk: 'low', rules: [], conditions: { maxTimeoutMs: 5 }, policyVersion: 'builtin@1' },
}
