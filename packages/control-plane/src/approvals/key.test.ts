import type { Operation, Question } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { approvalKey } from './key.ts'
import { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'
import type { AskedRequest, Caller } from '../app/caller.ts'

const ID = '0'.repeat(26)
const OTHER = '1'.repeat(26)
const principal = { actor: 'key:a', tenant: 't', role: 'developer', agents: null, platform: false } as const
const command: Operation = { kind: 'command', argv: ['a', 'b'], cwd: '/', env: ['A'], timeoutMs: 1 }
const question: Question = {
  point: 'command.run',
  tenant: 't',
  actor: 'key:a',
  role: 'developer',
  agent: 'x',
  sandbox: `sbx_${ID}`,
  operation: command,
}
const asked: AskedRequest = {
  route: 'runCommand',
  params: { id: `sbx_${ID}` },
  query: undefined,
  body: { argv: ['a', 'b'], env: { A: '1' } },
}

const keyOf = async (
  request: AskedRequest | undefined = asked,
  of: Partial<Question> = {},
  ephemeral = new EphemeralSandboxes(),
) => approvalKey({ principal, requestId: 'req_1', asked: request } satisfies Caller, { ...question, ...of }, ephemeral)

describe('the key of a request', () => {
  it('is the same for the same request, however its fields are ordered', async () => {
    const body = { env: { A: '1' }, argv: ['a', 'b'] }
    expect(await keyOf({ ...asked, body })).toEqual(await keyOf())
  })

  it.each<readonly [string, AskedRequest, Partial<Question>]>([
    ['words', asked, { operation: { ...command, argv: ['a b'] } }],
    ['names of variables', asked, { operation: { ...command, env: ['B'] } }],
    ['values of variables', { ...asked, body: { argv: ['a', 'b'], env: { A: '2' } } }, {}],
    ['bytes', { ...asked, digest: async () => 'other' }, {}],
    ['route', { ...asked, route: 'writeStdin' }, {}],
    ['query', { ...asked, query: { append: true } }, {}],
    ['actors', asked, { actor: 'key:b' }],
    ['roles', asked, { role: 'admin' }],
    ['tenants', asked, { tenant: 'u' }],
    ['agents', asked, { agent: 'y' }],
    ['points', asked, { point: 'command.stdin' }],
  ])('is another one with other %s, in every sandbox', async (_, request, of) => {
    const [before, after] = [await keyOf(), await keyOf(request, of)]
    expect(after.hash).not.toBe(before.hash)
    expect(after.wideHash).not.toBe(before.wideHash)
  })

  it('leaves the sandbox and the session open where it is wide, and only there', async () => {
    const sandbox = `sbx_${OTHER}`
    const [before, after] = [await keyOf(), await keyOf({ ...asked, params: { id: sandbox } }, { sandbox })]
    expect(after.hash).not.toBe(before.hash)
    expect(after.wideHash).toBe(before.wideHash)
  })

  it('of a program inside is of that sandbox, and where it is wide of any sandbox of the agent', async () => {
    const inside = (id: string, body: object) => {
      const sandbox = `sbx_${id}`
      const operation: Operation = { kind: 'other', payload: { action: 'deploy' } }
      const of = { point: 'sandbox.ask', role: 'sandbox', actor: `sandbox:${sandbox}`, sandbox, operation } as const
      return keyOf({ route: 'sandbox.ask', params: { sandbox }, query: null, body }, of)
    }
    const before = await inside(ID, { action: 'deploy' })
    const elsewhere = await inside(OTHER, { action: 'deploy' })
    expect([elsewhere.hash === before.hash, elsewhere.wideHash === before.wideHash]).toEqual([false, true])
    const more = await inside(ID, { action: 'deploy', detail: { to: 'prod' } })
    expect([more.hash === before.hash, more.wideHash === before.wideHash]).toEqual([false, false])
  })

  it('is the same in two ephemeral sandboxes with the same history, and not with another', async () => {
    const ephemeral = new EphemeralSandboxes()
    const places = [ID, OTHER].map((id) => `sbx_${id}`)
    for (const id of places) ephemeral.add(id, false, { image: 'i' })
    const keys = async () =>
      Promise.all(places.map(async (id) => keyOf({ ...asked, params: { id } }, { sandbox: id }, ephemeral)))
    const [one, two] = await keys()
    expect(one).toEqual(two)
    expect(one?.hash).not.toBe((await keyOf()).hash)
    ephemeral.append(`sbx_${ID}`, { command: 'x' })
    const [after, same] = await keys()
    expect(same).toEqual(two)
    expect(after?.hash).not.toBe(two?.hash)
    ephemeral.disturb(`sbx_${ID}`)
    expect((await keys())[0]).toEqual(await keyOf())
  })

  it('leaves open what a caller calls a step, which is new with every try', async () => {
    const body = { code: 'x' }
    const [one, two] = [
      { ...body, stepId: 'a' },
      { ...body, stepId: 'b' },
    ]
    expect(await keyOf({ ...asked, body: one })).toEqual(await keyOf({ ...asked, body: two }))
  })

  it('of what a rule sees as its record alone is the request, not the record', async () => {
    const record = (requestId: string): Partial<Question> => ({
      operation: { kind: 'other', payload: { requestId, cut: '…' } },
    })
    expect(await keyOf(asked, record('req_1'))).toEqual(await keyOf(asked, record('req_2')))
    const more = { ...asked, body: { ttlMs: 2 } }
    expect((await keyOf(more, record('req_1'))).hash).not.toBe((await keyOf(asked, record('req_1'))).hash)
  })
})
