import { generateKeyPairSync } from 'node:crypto'
import {
  askBody,
  type AskBody,
  policyDocument,
  registerAgentBody,
  type RenewedToken,
  type Self,
  signSandboxToken,
} from '@airlock/contract'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { SandboxTokenDesk } from './sandbox-tokens.ts'
import type { DoorsNews } from './door-news.ts'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { DoorControl } from './door-control.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, caller, CALLER, World } from '../testing/world.ts'
import { createRegistry, type Registry } from '../app/registry.ts'

const ADMIN = caller({ role: 'admin', actor: 'key:admin' })
const KEY = { tenant: 'default', agent: 'coder' }
/** Nobody leaves before the answer. */
const WAITING = new AbortController().signal
const ORIGIN = { process: 'doors-1', line: {}, signal: WAITING }
const REFUSED = { code: 'token_refused' }

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    let recorder: TestRecorder
    let stores: TestStores
    let world: World
    let who: Registry
    let sandbox: string

    beforeAll(async () => {
      recorder = await TestRecorder.start()
      stores = await dialect.start()
    })
    afterAll(async () => {
      await recorder?.stop()
      await stores?.stop()
    })
    beforeEach(async () => {
      world = await World.make(recorder, { place: await stores.make() })
      who = createRegistry(world.context, world.lifecycle)
      await who.agents.register(ADMIN, registerAgentBody.parse({ id: 'coder', approve: true }))
      sandbox = await create()
    })
    afterEach(() => world?.close())

    const create = async () => (await world.lifecycle.creation.create(CALLER, aSandbox({ agent: 'coder' }))).id
    const token = (of = sandbox) => world.plane.tokens.get(of) ?? ''
    const ask = (what: 'self' | 'heartbeat' | 'renew' = 'self', by = token(), at = sandbox) =>
      world.lifecycle.doorCalls.answer({ sandbox: at, token: by === '' ? null : by, ask: what }, ORIGIN)
    const renew = async () => (await ask('renew')) as RenewedToken
    /** Nothing is opened, and the evidence of the tenant says why. */
    const expectRefused = async (reason: string, by = token(), at = sandbox) => {
      for (const what of ['self', 'heartbeat', 'renew'] as const)
        await expect(ask(what, by, at)).rejects.toMatchObject(REFUSED)
      const records = (await world.evidence(at)).filter(({ point }) => point === 'auth.refuse')
      expect(records.map(({ agent, actor, status, payload }) => ({ agent, actor, status, payload }))).toEqual(
        ['self', 'heartbeat', 'renew'].map((what) => ({
          agent: 'coder',
          actor: `sandbox:${at}`,
          status: 'denied',
          payload: { reason, door: 'control', ask: what },
        })),
      )
    }

    it('says who a sandbox is, to the token that it was given at its creation', async () => {
      expect(await ask()).toEqual({
        sandbox,
        tenant: 'default',
        agent: 'coder',
        generation: 1,
        scopes: ['self', 'heartbeat', 'renew', 'ask', 'tool'],
        expiresAt: new Date(world.clock.now() + 600_000).toISOString(),
        sandboxExpiresAt: new Date(world.clock.now() + 600_000).toISOString(),
      } satisfies Self)
    })

    it('renews a token, with a record before, and both are good until their own end', async () => {
      world.clock.advance(300_000)
      const { token: next, lifeMs, expiresAt } = await renew()
      expect([lifeMs, expiresAt]).toEqual([600_000, new Date(world.clock.now() + 600_000).toISOString()])
      expect(await ask('self')).toMatchObject({ sandbox })
      world.clock.advance(300_000)
      await expect(ask('self')).rejects.toMatchObject({ ...REFUSED, message: 'The token has expired.' })
      expect(await ask('self', next)).toMatchObject({ sandbox })
      const causes = (await world.connections(sandbox)).map(({ payload }) => payload['cause'])
      expect(causes).toEqual(['creation', 'renewal'])
    })

    it('renews nothing that cannot be recorded', async () => {
      world.refused = ['sandbox.connect done']
      await expect(renew()).rejects.toMatchObject({ code: 'evidence_unavailable' })
    })

    it('takes a heartbeat for a sign of life, and a renewal for none', async () => {
      const seen = async () => (await who.agents.get(ADMIN, 'coder')).lastSeenAt
      const before = await seen()
      world.clock.advance(1_000)
      await renew()
      expect(await seen()).toBe(before)
      await ask('heartbeat')
      expect(await seen()).toBe(new Date(world.clock.now()).toISOString())
    })

    describe('an ask of a program inside', () => {
      const requestId = 'req_1'
      const asks = async (body: Partial<AskBody>, by = token()) => {
        const asked = askBody.parse({ action: 'deploy', ...body })
        const call = { sandbox, token: by, ask: 'ask', requestId, body: asked } as const
        return world.lifecycle.doorCalls.answer(call, ORIGIN)
      }
      const rule = (effect: 'allow' | 'deny', actions: readonly string[]) => ({
        id: `${effect}s`,
        kind: 'operation' as const,
        effect,
        risk: 'low' as const,
        reason: 'The house says so.',
        match: { actions: [...actions] },
      })
      const records = async () =>
        (await world.evidence(sandbox))
          .filter(({ point }) => point === 'sandbox.ask')
          .map(({ status, actor, role, payload, error }) => ({ status, actor, role, payload, code: error?.code }))
      const detail = { to: 'prod', password: 'hunter2' }
      const said = {
        actor: '',
        role: 'sandbox',
        payload: { requestId, action: 'deploy', detail: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
      }

      beforeEach(async () => {
        said.actor = `sandbox:${sandbox}`
        const rules = [rule('allow', ['deploy']), rule('deny', ['drop.*'])]
        const document = policyDocument.parse({ name: 'house', rules })
        await who.policies.put(ADMIN, 'house', { document, scope: 'tenant' })
      })

      it('is allowed by a rule that names it, with its record before and the rules in the answer', async () => {
        expect(await asks({ detail })).toEqual({
          allowed: true,
          rules: [{ policy: 'house', rule: 'allows', effect: 'allow', risk: 'low', reason: 'The house says so.' }],
        })
        expect(await records()).toEqual([
          { ...said, status: 'requested', code: undefined },
          { ...said, status: 'done', code: undefined },
        ])
        expect(JSON.stringify(await world.evidence(sandbox))).not.toContain('hunter2')
      })

      it('is denied by a rule that says so, and needs a person where none names it', async () => {
        await expect(asks({ action: 'drop.tables' })).rejects.toMatchObject({ code: 'policy_denied' })
        await expect(asks({ action: 'release', waitSeconds: 1 })).rejects.toMatchObject({ code: 'approval_required' })
        expect((await records()).map(({ status, payload, code }) => [status, payload['action'], code])).toEqual([
          ['denied', 'drop.tables', 'policy_denied'],
          ['denied', 'release', 'approval_required'],
        ])
      })

      it('that cannot be recorded is not allowed', async () => {
        world.refused = ['sandbox.ask requested']
        await expect(asks({})).rejects.toMatchObject({ code: 'evidence_unavailable' })
      })

      it('is refused without a good token, before anybody is asked', async () => {
        await expect(asks({}, 'alt_x')).rejects.toMatchObject(REFUSED)
        expect(await records()).toEqual([])
      })
    })

    it('refuses who brings none', async () => expectRefused('missing', ''))
    it('refuses what is no token', async () => expectRefused('malformed', 'al_x_y'))
    it('refuses the key of a user', async () => expectRefused('malformed', `al_${'k'.repeat(26)}_${'s'.repeat(32)}`))

    it('refuses what somebody else signed', async () => {
      const desk = new SandboxTokenDesk(generateKeyPairSync('ed25519').privateKey)
      const row = { id: sandbox, ...KEY, generation: 1 }
      await expectRefused('forged', desk.issue(row, world.clock.now()).text)
    })

    it('refuses what was altered', async () => {
      const [payload = '', signature] = token().slice('alt_'.length).split('.')
      const claims = Buffer.from(payload, 'base64url').toString().replace('"generation":1', '"generation":2')
      await expectRefused('forged', `alt_${Buffer.from(claims).toString('base64url')}.${signature}`)
    })

    it('refuses what has expired', async () => {
      world.clock.advance(600_000)
      await expectRefused('expired')
    })

    it('refuses the token of another sandbox, of the same agent too, and says so at the socket where it came', async () => {
      const other = await create()
      await expectRefused('other sandbox', token(other))
      expect(await ask('self', token(other), other)).toMatchObject({ sandbox: other })
    })

    it('refuses the token of a sandbox that has ended', async () => {
      const old = token()
      await world.lifecycle.termination.terminate(sandbox, { reason: 'terminated', actor: 'key:test' })
      await expectRefused('sandbox ended', old)
    })

    it('refuses the token of an old generation while its sandbox still runs', async () => {
      await stores.run(world.place, `UPDATE agents SET generation = 2 WHERE id = 'coder'`)
      await expectRefused('old generation')
      await expect(world.lifecycle.connections.connect(CALLER, sandbox, { revoke: false })).rejects.toMatchObject({
        code: 'stale_generation',
      })
    })

    it.each([
      ['revoke', 'agent not approved'],
      ['suspend', 'agent suspended'],
      ['remove', 'agent gone'],
    ] as const)('refuses from the moment of %s on, before the sandbox has ended', async (verb, reason) => {
      const told: DoorsNews[] = []
      world.context.doorNews.subscribe((change) => told.push(change))
      // Nobody ends a sandbox that is not in its turn.
      const ended = await world.context.turns.run(sandbox, async () => {
        const work = who.agents[verb](ADMIN, 'coder', {})
        const refused = async () =>
          ask().then(
            () => undefined,
            () => true,
          )
        await waitFor(refused, { signal: deadline(100_000), everyMs: 5 })
        const records = (await world.evidence(sandbox)).filter(({ point }) => point === 'auth.refuse')
        expect(records.map(({ payload }) => payload['reason'])).toEqual([reason])
        await expect.poll(() => told).toEqual([{ what: 'revoked', sandboxes: [sandbox] }])
        return { work }
      })
      await ended.work
    })

    it('refuses every token from before a connection that revokes them', async () => {
      const first = token()
      const { token: second } = await renew()
      const { expiresAt, ...connection } = await world.lifecycle.connections.connect(CALLER, sandbox, { revoke: true })
      expect(connection).toMatchObject({ sandbox, agent: 'coder', generation: 1 })
      expect(await ask()).toMatchObject({ sandbox, expiresAt })
      for (const old of [first, second]) await expect(ask('self', old)).rejects.toMatchObject(REFUSED)
      const refused = (await world.evidence(sandbox)).filter(({ point }) => point === 'auth.refuse')
      expect(refused.map(({ payload }) => payload['reason'])).toEqual(['revoked', 'revoked'])
    })

    it('refuses what its scopes do not say', async () => {
      const { privateKey } = generateKeyPairSync('ed25519')
      const desk = new SandboxTokenDesk(privateKey)
      const at = world.clock.now()
      const claims = { tokenId: 'tok_1', ...KEY, sandbox, generation: 1, issuedAt: at, expiresAt: at + 1000 }
      const narrow = signSandboxToken({ ...claims, scopes: ['self'] }, privateKey)
      const control = new DoorControl({ ...world.context, sandboxTokens: desk }, world.lifecycle)
      expect(await control.answer({ sandbox, token: narrow, ask: 'self' }, WAITING)).toMatchObject({ scopes: ['self'] })
      await expect(control.answer({ sandbox, token: narrow, ask: 'renew' }, WAITING)).rejects.toMatchObject(REFUSED)
    })
  })
