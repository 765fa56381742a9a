import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type CloseModelCall,
  KEYS_LIFE_FILE,
  type OpenModelCall,
  policyDocument,
  RESERVATION_KEY_FILE,
  type ServedModel,
  verifyReservation,
} from '@airlock/contract'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { expireDue } from '../store/approvals.ts'
import { listOwedModelCalls, sumHeldByCalls } from '../store/model-calls.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, caller, CALLER, World } from '../testing/world.ts'
import { ApprovalAnswers } from '../approvals/approvals.ts'
import { createLifecycle } from '../app/lifecycle-parts.ts'
import type { Context } from '../app/context.ts'
import { ApprovalDesk } from '../approvals/desk.ts'
import { Guardian } from '../policies/guardian.ts'
import { Policies } from '../policies/policies.ts'
import { dayOf } from '../spend/reserve.ts'
import { Usage } from '../spend/usage.ts'
import { Receipts } from '../evidence/receipts.ts'
import { ModelCatalog } from './catalog.ts'
import { ModelCalls } from './model-calls.ts'
import { ReservationDesk } from './reservation-desk.ts'

const ADMIN = caller({ role: 'admin', actor: 'key:admin' })
const LIFE = 'a'.repeat(26)
const SMALL: ServedModel = {
  name: 'small',
  aliases: ['little'],
  upstream: { name: 'main', kind: 'openai', model: 'small-2026' },
  contextWindow: 8000,
  maxOutput: 1000,
  price: { input: 1_000_000, output: 2_000_000, cacheRead: 0, cacheWrite: 1_000_000 },
}
const LARGE: ServedModel = { ...SMALL, name: 'large', aliases: [] }
const ASKED = { route: 'chat', stream: true, inputTokens: 100, maxOutputTokens: 50, ceilingMicroDollars: 200 } as const
const USED = { inputTokens: 80, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0 }

for (const dialect of DIALECTS)
  describe(`model calls on ${dialect.name}`, dialect.options, () => {
    let recorder: TestRecorder
    let stores: TestStores
    let world: World
    let calls: ModelCalls
    let sandbox: string
    let publicDir: string
    let own: Context
    let receipts: Receipts
    beforeAll(async () => {
      recorder = await TestRecorder.start()
      stores = await dialect.start()
    })
    afterAll(async () => {
      await recorder?.stop()
      await stores?.stop()
    })
    beforeEach(async () => {
      world = await World.make(recorder, { place: await stores.make(), budget: { dollarsPerDay: 0.001 } })
      publicDir = join(world.home, 'public')
      mkdirSync(publicDir)
      writeFileSync(join(publicDir, KEYS_LIFE_FILE), LIFE)
      const reservations = new ReservationDesk(generateKeyPairSync('ed25519').privateKey, publicDir)
      await reservations.publish()
      own = { ...world.context, models: new ModelCatalog([SMALL, LARGE]), reservations }
      receipts = new Receipts(own)
      calls = new ModelCalls(own, receipts)
      const { creation } = createLifecycle(own)
      sandbox = (await creation.create(CALLER, aSandbox({ models: ['little'] }))).id
    })
    afterEach(async () => world.close())

    const rule = (effect: 'allow' | 'deny' | 'ask', models: string) => ({
      id: `${effect}-models`,
      kind: 'model' as const,
      effect,
      risk: 'low' as const,
      reason: 'it is a test',
      match: { models: [models] },
    })
    const allow = async (...rules: ReturnType<typeof rule>[]) => {
      const document = policyDocument.parse({ name: 'models', rules })
      await new Policies(world.context).put(ADMIN, 'models', { scope: 'tenant', document })
      await world.context.policies.refresh()
    }
    const open = async (asked: Partial<OpenModelCall> = {}, doors = 'doors1') =>
      calls.open({ ...ASKED, sandbox, model: 'small', ...asked }, doors)
    const close = async (callId: string, end: Partial<CloseModelCall> = {}) =>
      calls.close({ callId, usage: USED, status: 200, error: null, firstByteMs: 5, durationMs: 9, ...end })
    const dollars = async () => (await new Usage(world.context).report(CALLER, {})).items.map((row) => row.dollars)
    const held = async () => {
      const of = { tenant: 'default', agent: 'default', day: dayOf(world.clock.now()) }
      return (await world.store.query((db) => sumHeldByCalls(db, of))).microDollars
    }
    const seen = (process: string, modelCalls: readonly string[] | null = null) => ({
      process,
      at: world.clock.now(),
      modelCalls: modelCalls && new Set(modelCalls),
    })
    const story = async () =>
      (await world.evidence(sandbox))
        .filter(({ point }) => point === 'model.call')
        .map(({ status, payload, error }) => ({ status, payload, error }))

    it('with an impossible usage are billed their ceiling, recorded as such, and the tenant works on', async () => {
      await allow(rule('allow', 'small'))
      const { callId } = await open()
      await close(callId, { usage: { ...USED, inputTokens: 1e15, outputTokens: 1e15 } })
      expect(await dollars()).toEqual([0.0002])
      expect((await story()).at(-1)).toMatchObject({
        payload: { usage: 'unreported', implausible: { input: 1e15, output: 1e15 }, microDollars: 200 },
      })
      await close((await open()).callId)
      expect(await dollars()).toEqual([0.00032])
    })

    it('are allowed by a rule, reserved, recorded before and after, and billed by their usage', async () => {
      await allow(rule('allow', 'small'))
      const { callId, reservation } = await open({ model: 'little' })
      const key = createPublicKey(readFileSync(join(publicDir, RESERVATION_KEY_FILE)))
      expect(verifyReservation(reservation ?? '', key, world.clock.now())).toMatchObject({
        callId,
        life: LIFE,
        account: 'default/default',
        upstream: 'main',
        model: 'small-2026',
        ceiling: 200,
        maxOutputTokens: 50,
      })
      expect(await held()).toBe(200)
      await close(callId)
      await close(callId)
      expect(await held()).toBe(0)
      expect(await dollars()).toEqual([0.00012])
      const asked = {
        model: 'small',
        asked: 'little',
        upstream: 'main',
        call: callId,
        ceiling: { input: 100, output: 50, microDollars: 200 },
      }
      expect(await story()).toMatchObject([
        { status: 'requested', payload: asked },
        {
          status: 'done',
          payload: { call: callId, usage: { input: 80, output: 20, cacheRead: 0 }, microDollars: 120, httpStatus: 200 },
        },
      ])
    })

    it('that a policy denies reserve nothing and are in the evidence', async () => {
      await allow(rule('allow', '*'), rule('deny', 'small'))
      await expect(open()).rejects.toMatchObject({ code: 'policy_denied' })
      expect(await held()).toBe(0)
      expect(await story()).toMatchObject([{ status: 'denied', error: { code: 'policy_denied' } }])
    })

    it('of an unknown model name what to type', async () => {
      await expect(open({ model: 'none' })).rejects.toMatchObject({
        code: 'model_not_found',
        hint: 'List the models: airlock llm models',
      })
    })

    it('beyond the budget are refused, and what is held is free again after the end', async () => {
      await allow(rule('allow', '*'))
      const { callId } = await open({ ceilingMicroDollars: 900 })
      await expect(open()).rejects.toMatchObject({ code: 'budget_exhausted' })
      await close(callId, { usage: 'unsent', error: 'upstream_unavailable', status: 503 })
      await open()
    })

    it('whose record cannot be written do not happen, and hold nothing', async () => {
      await allow(rule('allow', '*'))
      world.refused = ['model.call requested']
      await expect(open()).rejects.toMatchObject({ code: 'evidence_unavailable' })
      expect(await held()).toBe(0)
    })

    it('are refused when `keys` is not up, and hold nothing', async () => {
      await allow(rule('allow', '*'))
      rmSync(join(publicDir, KEYS_LIFE_FILE))
      await expect(open()).rejects.toMatchObject({ code: 'upstream_unavailable' })
      expect(await held()).toBe(0)
    })

    it('of a doors process that died cost their ceiling, once', async () => {
      await allow(rule('allow', '*'))
      const { callId } = await open()
      await calls.closeLost(seen('doors1'))
      expect(await held()).toBe(200)
      await calls.closeLost(seen('doors2'))
      await close(callId)
      expect([await held(), await dollars()]).toEqual([0, [0.0002]])
      expect((await story()).map(({ status }) => status)).toEqual(['requested', 'unknown'])
    })

    it('that the doors have no answer to were not sent, and are closed once they say so', async () => {
      await allow(rule('allow', '*'))
      const [kept, unheard] = [(await open()).callId, (await open()).callId]
      world.clock.advance(1)
      await calls.closeLost(seen('doors1', null))
      expect(await held()).toBe(400)
      const hello = seen('doors1', [kept])
      const later = await open()
      await calls.closeLost(hello)
      await calls.closeLost(hello)
      expect([await held(), await dollars()]).toEqual([400, [0]])
      const ends = (await story()).filter(({ status }) => status !== 'requested')
      expect(ends).toMatchObject([{ status: 'failed', payload: { call: unheard, usage: 'unsent' } }])
      for (const callId of [kept, later.callId]) await close(callId)
      expect([await held(), await dollars()]).toEqual([0, [0.00024]])
    })

    it('owe their last record until the evidence has it, and are recorded once', async () => {
      await allow(rule('allow', '*'))
      // Its process dies before it notes the end.
      calls = new ModelCalls(own, { modelCallEnded: () => {} })
      const { callId } = await open()
      const owed = async () =>
        (await world.store.query((db) => listOwedModelCalls(db, { node: own.node.id, after: '', limit: 9 }))).map(
          ({ id }) => id,
        )
      await close(callId)
      expect(await owed()).toEqual([callId])
      await receipts.payOwed()
      const isPaid = async () => {
        await receipts.flush(async () => new Set(['default']))
        return (await owed()).length === 0 ? true : undefined
      }
      await waitFor(isPaid, { signal: deadline(20_000), everyMs: 20 })
      await receipts.payOwed()
      expect((await story()).map(({ status }) => status)).toEqual(['requested', 'done'])
    })

    it('of a sandbox that ended and that nobody reported become one estimated fact', async () => {
      await allow(rule('allow', '*'))
      const { callId } = await open()
      await world.lifecycle.termination.terminate(sandbox, { reason: 'terminated', actor: 'test' })
      await calls.closeLost(seen('doors1'))
      expect(await held()).toBe(200)
      world.clock.advance(31_000)
      await calls.closeLost(seen('doors1'))
      await close(callId)
      expect([await held(), (await dollars())[0]]).toEqual([0, 0.0002])
    })

    it('that need a person are refused at once with the approval, and pass when it is there', async () => {
      await allow(rule('ask', 'small'))
      const approvals = new ApprovalDesk({ ...world.context, news: world.context.approvalNews })
      const guardian = new Guardian({ ...world.context, book: world.context.policies, sources: [], approvals })
      calls = new ModelCalls({ ...own, guardian }, receipts)
      const refusal = await open().catch((error: unknown) => error)
      expect(refusal).toMatchObject({
        code: 'approval_required',
        approval: expect.stringMatching(/^apr_/),
        hint: expect.stringContaining('airlock approvals approve apr_'),
      })
      const { approval = '' } = refusal as { readonly approval?: string }
      const answers = new ApprovalAnswers(world.context)
      await answers.approve(caller({ role: 'operator', actor: 'key:other' }), approval, { scope: 'once' })
      await open()
      await expect(open()).rejects.toMatchObject({ code: 'approval_required' })
    })

    it('that need a person are asked about no longer than their sandbox lives', async () => {
      await allow(rule('ask', 'small'))
      const approvals = new ApprovalDesk({ ...world.context, news: world.context.approvalNews })
      const guardian = new Guardian({ ...world.context, book: world.context.policies, sources: [], approvals })
      calls = new ModelCalls({ ...own, guardian }, receipts)
      await expect(open()).rejects.toMatchObject({ hint: expect.stringContaining('--scope agent') })
      const { store, clock } = world.context
      const expire = async () => store.transaction((db) => expireDue(db, store.now(clock)))
      expect(await expire()).toEqual([])
      await world.lifecycle.termination.terminate(sandbox, { reason: 'terminated', actor: 'test' })
      expect(await expire()).toMatchObject([{ point: 'model.call', sandbox, state: 'expired' }])
    })

    it('of a model that the sandbox was not created with are refused, and that is evidence', async () => {
      await allow(rule('allow', '*'))
      await expect(open({ model: 'large' })).rejects.toMatchObject({
        code: 'model_not_found',
        message: 'This sandbox was created without the model large.',
        hint: 'Create one that has it: airlock create --model large',
      })
      expect(await story()).toMatchObject([{ status: 'denied', error: { code: 'model_not_found' } }])
    })

    it('with a ceiling below the price of their output are refused', async () => {
      await allow(rule('allow', '*'))
      await expect(open({ ceilingMicroDollars: 99 })).rejects.toMatchObject({ code: 'invalid_request' })
    })

    it('of a sandbox that is gone, or whose agent may not act, are refused', async () => {
      await allow(rule('allow', '*'))
      await world.lifecycle.termination.terminate(sandbox, { reason: 'terminated', actor: 'test' })
      await expect(open()).rejects.toMatchObject({ code: 'sandbox_ended' })
    })
  })
