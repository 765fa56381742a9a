import { AirlockError, type Decision, type NewRecord, type Question } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'
import type { Caller } from '../app/caller.ts'
import type { Deed } from './deed.ts'
import { type Approvals, Guardian, type Source } from './guardian.ts'

const asker: Caller = {
  principal: { actor: 'key:x', tenant: 'acme', role: 'developer', agents: null, platform: false },
  requestId: 'req_1',
}
const deed: Deed = {
  point: 'key.create',
  tenant: 'acme',
  agent: 'a',
  sandbox: null,
  actor: 'key:x',
  payload: { requestId: 'req_1', token: 'al_abc_secret', name: 'n' },
}

function said(effect: Decision['effect'], policy = 'house'): Decision {
  const rules = effect === 'allow' ? [] : [{ policy, rule: 'r', effect, risk: 'high' as const, reason: 'Because.' }]
  return { effect, risk: 'low', rules, conditions: {}, policyVersion: policy }
}

interface World {
  readonly guardian: Guardian
  readonly asked: Question[]
  readonly askedElsewhere: Question[]
  readonly settled: Decision[]
  readonly records: NewRecord[]
}

function world(of: {
  readonly book?: readonly Decision[]
  readonly opa?: Decision
  readonly settle?: Approvals['settle']
  readonly ephemeral?: EphemeralSandboxes
}): World {
  const [asked, askedElsewhere, settled, records]: [Question[], Question[], Decision[], NewRecord[]] = [[], [], [], []]
  const book = [...(of.book ?? [said('allow')])]
  const opa: Source = {
    name: 'opa',
    decide: async (question) => {
      askedElsewhere.push(question)
      return of.opa ?? said('allow', 'opa')
    },
    health: () => ({ isHealthy: true, problem: null }),
  }
  const guardian = new Guardian({
    book: {
      decide: (question) => {
        asked.push(question)
        return (book.length > 1 ? book.shift() : book[0]) ?? said('deny')
      },
    },
    sources: of.opa ? [opa] : [],
    approvals: {
      settle: async (...by) => {
        settled.push(by[2])
        return of.settle?.(...by) ?? by[2]
      },
    },
    audit: { note: (record) => void records.push(record) },
    kills: { assertAlive: () => {} },
    ephemeral: of.ephemeral ?? new EphemeralSandboxes(),
  })
  return { guardian, asked, askedElsewhere, settled, records }
}

describe('Guardian', () => {
  it('lets pass what is allowed, with the decision and the role on it, and records nothing itself', async () => {
    const { guardian, records } = world({})
    const passed = await guardian.pass(asker, deed)
    expect(passed).toMatchObject({ ...deed, role: 'developer', decision: said('allow') })
    expect(records).toEqual([])
  })

  it('tells rules which sandboxes are ephemeral, unless they write to the host', async () => {
    const ephemeral = new EphemeralSandboxes()
    ephemeral.add('sbx_1', false, {})
    ephemeral.add('sbx_2', true, {})
    const { guardian, asked } = world({ ephemeral })
    for (const sandbox of ['sbx_1', 'sbx_2', 'sbx_3', null]) await guardian.pass(asker, { ...deed, sandbox })
    expect(asked.map((question) => question.ephemeral)).toEqual([true, undefined, undefined, undefined])
  })

  it('shows rules what the record will say, without secrets, when nothing else is known', async () => {
    const { guardian, asked } = world({})
    await guardian.pass(asker, deed)
    expect(asked).toEqual([
      {
        point: 'key.create',
        tenant: 'acme',
        actor: 'key:x',
        role: 'developer',
        agent: 'a',
        sandbox: null,
        operation: { kind: 'other', payload: { requestId: 'req_1', token: '[redacted]', name: 'n' } },
      },
    ])
  })

  it('refuses by name of the rule, and records that with what was decided', async () => {
    const { guardian, records } = world({ book: [said('deny')] })
    const message = 'The rule house/r denies it: Because.'
    await expect(guardian.pass(asker, deed)).rejects.toMatchObject({ code: 'policy_denied', message })
    expect(records).toEqual([
      {
        ...deed,
        role: 'developer',
        decision: said('deny'),
        status: 'denied',
        error: { code: 'policy_denied', message },
      },
    ])
  })

  it('lets the strictest of all hold, of several operations and of other sources', async () => {
    const mounts = [
      { kind: 'mount', path: '/a', mode: 'ro' },
      { kind: 'mount', path: '/b', mode: 'rw' },
    ] as const
    const { guardian } = world({ book: [said('allow'), said('deny')] })
    await expect(guardian.pass(asker, deed, mounts)).rejects.toMatchObject({ code: 'policy_denied' })
    const other = world({ opa: said('deny', 'opa') })
    await expect(other.guardian.pass(asker, deed, mounts)).rejects.toMatchObject({ message: /opa\/r/ })
    expect(other.askedElsewhere.map(({ operation }) => operation)).toEqual(mounts)
  })

  it('takes nowhere else what the policies deny', async () => {
    const { guardian, askedElsewhere } = world({ book: [said('deny')], opa: said('allow', 'opa') })
    await expect(guardian.pass(asker, deed)).rejects.toMatchObject({ code: 'policy_denied' })
    expect(askedElsewhere).toEqual([])
  })

  it('explains what each would say, and asks nobody to approve', async () => {
    const { guardian, settled, records } = world({ book: [said('ask')], opa: said('deny', 'opa') })
    const question = { ...asker.principal, point: 'key.create', agent: null, sandbox: null } as const
    const { tenant, actor, role, point } = question
    const operation = { kind: 'other', payload: {} } as const
    expect(await guardian.explain({ tenant, actor, role, point, agent: null, sandbox: null, operation })).toMatchObject(
      {
        decision: { effect: 'deny', rules: [{ policy: 'opa' }, { policy: 'house' }] },
        sources: [
          { name: 'policies', decision: said('ask') },
          { name: 'opa', decision: said('deny', 'opa') },
        ],
      },
    )
    expect([settled, records]).toEqual([[], []])
  })
})

describe('an ask', () => {
  it('is settled by the approvals, and what they allow passes', async () => {
    const approved = { ...said('allow'), policyVersion: 'approved' }
    const { guardian, settled } = world({ book: [said('ask')], settle: async () => approved })
    expect((await guardian.pass(asker, deed)).decision).toEqual(approved)
    expect(settled).toEqual([said('ask')])
  })

  it('that is refused is on record with what was decided', async () => {
    const settle = async () => Promise.reject(new AirlockError('approval_required', 'Ask Ann.'))
    const { guardian, records } = world({ book: [said('ask')], settle })
    await expect(guardian.pass(asker, deed)).rejects.toMatchObject({ code: 'approval_required', message: 'Ask Ann.' })
    expect(records).toMatchObject([{ status: 'denied', decision: { effect: 'ask' }, error: { message: 'Ask Ann.' } }])
  })

  it('that was waited for is looked at anew: a policy may deny it by now', async () => {
    const { guardian } = world({ book: [said('ask'), said('deny')], settle: async () => 'again' })
    await expect(guardian.pass(asker, deed)).rejects.toMatchObject({ code: 'policy_denied' })
  })

  it('of a caller that is good no more when the answer comes is not settled, so no approval is used', async () => {
    const { guardian, settled } = world({ book: [said('ask')], settle: async () => 'again' })
    const assertGood = async () => Promise.reject(new AirlockError('token_refused'))
    await expect(guardian.pass({ ...asker, assertGood }, deed)).rejects.toMatchObject({ code: 'token_refused' })
    expect(settled).toHaveLength(1)
  })

  it('is not looked at for ever', async () => {
    const { guardian, settled } = world({ book: [said('ask')], settle: async () => 'again' })
    await expect(guardian.pass(asker, deed)).rejects.toMatchObject({ code: 'approval_required' })
    expect(settled).toHaveLength(3)
  })
})
