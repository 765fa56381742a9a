import { type OpenNetworkCall, policyDocument, type PolicyDocumentInput, registerAgentBody } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createRegistry, type Registry } from '../app/registry.ts'
import type { DoorsNews } from '../doors/door-news.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, caller, CALLER, World } from '../testing/world.ts'

const ADMIN = caller({ role: 'admin', actor: 'key:admin' })
const LINE = {}
const END = { address: '192.0.2.1', sent: 7, received: 9, reason: null, message: null }

let recorder: TestRecorder
let world: World
let who: Registry
let sandbox: string
let told: DoorsNews[]

beforeAll(async () => {
  recorder = await TestRecorder.start()
})
afterAll(async () => recorder?.stop())
beforeEach(async () => {
  world = await World.make(recorder)
  who = createRegistry(world.context, world.lifecycle)
  await who.agents.register(ADMIN, registerAgentBody.parse({ id: 'coder', approve: true }))
  sandbox = await create(['egress'])
  told = []
  world.context.doorNews.subscribe((news) => told.push(news))
})
afterEach(() => world?.close())

it('is allowed by a rule that names the host, recorded before and after', async () => {
  await rules(['example.com'])
  const { connection, raw } = await open()
  expect(raw).toBe(false)
  const said = { requestId: 'req_1', host: 'example.com', port: 443, traffic: 'tls', connection }
  expect(await records()).toMatchObject([
    { status: 'requested', role: 'sandbox', actor: `sandbox:${sandbox}`, payload: said },
  ])
  await close(connection)
  await close(connection)
  expect(await records()).toMatchObject([
    { status: 'requested' },
    { status: 'done', payload: { ...said, address: '192.0.2.1', sent: 7, received: 9, reason: null } },
  ])
})

it('is denied where no rule names the host, with the command that would allow it', async () => {
  await expect(open()).rejects.toMatchObject({
    code: 'policy_denied',
    message: 'No rule allows example.com:443.',
    hint: 'Ask an admin to run: airlock egress allow example.com:443',
  })
  expect(await records()).toMatchObject([{ status: 'denied', error: { code: 'policy_denied' } }])
})

it('that failed before it carried a byte has failed', async () => {
  await rules(['example.com'])
  const { connection } = await open()
  await close(connection, { ...END, sent: 0, received: 0, reason: 'address_refused', message: 'It is private.' })
  expect((await records()).at(-1)).toMatchObject({ status: 'failed', error: { code: 'address_refused' } })
})

it('may carry other bytes than TLS where a rule says so', async () => {
  await rules(['example.com'], { traffic: ['tls', 'raw'] })
  expect((await open()).raw).toBe(true)
})

it('that cannot be recorded is not opened', async () => {
  await rules(['example.com'])
  world.refused = ['network.connect requested']
  await expect(open()).rejects.toMatchObject({ code: 'evidence_unavailable' })
})

it('is cut when a rule takes the host away, and others are not', async () => {
  await rules(['example.com', 'other.example'])
  const one = await open()
  await open({ host: 'other.example', requestId: 'req_2' })
  // A version of the same moment would be taken for a repeated write.
  world.clock.advance(1)
  await rules(['other.example'])
  world.context.doorNews.publish({ what: 'policy', sandboxes: null })
  await expect
    .poll(() => told.filter(({ what }) => what === 'cut'))
    .toEqual([{ what: 'cut', sandbox, connections: [one.connection] }])
})

it('has an unknown end when the doors are lost', async () => {
  await rules(['example.com'])
  const { connection } = await open()
  world.lifecycle.doorCalls.lost(LINE)
  await close(connection)
  expect((await records()).map(({ status }) => status)).toEqual(['requested', 'unknown'])
})

it('is ended by its own sandbox alone', async () => {
  await rules(['example.com'])
  const { connection } = await open()
  const other = await create(['egress'])
  await call({ ask: 'network.close', sandbox: other, connection, ...END })
  expect((await records()).map(({ status }) => status)).toEqual(['requested'])
})

it('is for a sandbox that runs and has the door', async () => {
  await rules(['example.com'])
  const doorless = await create([])
  await expect(open({ sandbox: doorless })).rejects.toMatchObject({ code: 'forbidden' })
  await world.lifecycle.pauses.pause(CALLER, sandbox)
  expect(told).toContainEqual({ what: 'paused', sandboxes: [sandbox] })
  await expect(open()).rejects.toMatchObject({ code: 'sandbox_paused' })
})

async function create(doors: ['egress'] | []): Promise<string> {
  return (await world.lifecycle.creation.create(CALLER, aSandbox({ agent: 'coder', doors }))).id
}

async function rules(hosts: string[], more: { readonly traffic?: ('tls' | 'raw')[] } = {}): Promise<void> {
  const shared = { kind: 'network', effect: 'allow', risk: 'low', reason: 'Tested.' } as const
  const document: PolicyDocumentInput = { name: 'hosts', rules: [{ ...shared, id: 'all', match: { hosts, ...more } }] }
  await who.policies.put(ADMIN, 'hosts', { document: policyDocument.parse(document), scope: 'tenant' })
}

async function open(of: Partial<OpenNetworkCall> = {}): Promise<{ connection: string; raw: boolean }> {
  const asked = { sandbox, requestId: 'req_1', host: 'example.com', port: 443, traffic: 'tls', method: null } as const
  return (await call({ ask: 'network.open', ...asked, ...of })) as { connection: string; raw: boolean }
}

async function close(connection: string, end: object = {}): Promise<void> {
  await call({ ask: 'network.close', sandbox, connection, ...END, ...end })
}

async function call(asked: Parameters<typeof world.lifecycle.doorCalls.answer>[0]): Promise<unknown> {
  return world.lifecycle.doorCalls.answer(asked, {
    process: 'doors-1',
    line: LINE,
    signal: new AbortController().signal,
  })
}

async function records() {
  return (await world.evidence(sandbox)).filter(({ point }) => point === 'network.connect')
}
