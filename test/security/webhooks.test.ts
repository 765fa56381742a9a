import type { Sandbox, Webhook } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { isSigned, Receiver } from '../support/webhook-receiver.ts'
import { append, Asking, needed, refusal } from './asking.ts'

let server: TestServer
let asking: Asking
let sandbox: Sandbox
let receiver: Receiver
let url: string

beforeAll(async () => {
  server = await startServer({ env: { AIRLOCK_WEBHOOK_PRIVATE: 'true' } })
  asking = await Asking.on(server)
  sandbox = await asking.developer.sandboxes.create()
}, 240_000)

beforeEach(async () => {
  receiver = new Receiver()
  url = await receiver.listen()
})

afterEach(async () => {
  for (const { id } of await asking.admin.webhooks.list()) await asking.admin.webhooks.remove(id)
  await receiver.close()
})

afterAll(async () => server?.stop())

describe('a webhook', () => {
  it('is told of asks and answers, signed with the secret that was shown once', async () => {
    const { webhook, secret } = await asking.admin.webhooks.create({
      url: `${url}/hook?a=1`,
      events: ['approval.pending', 'approval.answered'],
    })
    const id = await needed(append(sandbox, {}, 'told'))
    await asking.operator.approvals.approve(id)
    const [asked, answered] = await receiver.has(2)
    expect([asked?.path, answered?.path]).toEqual(['/hook?a=1', '/hook?a=1'])
    for (const delivery of [asked, answered]) expect(delivery && isSigned(delivery, secret)).toBe(true)
    expect(asked && isSigned(asked, 'whs_other')).toBe(false)
    expect(JSON.parse(asked?.body ?? '')).toMatchObject({
      event: 'approval.pending',
      tenant: 'default',
      data: { approval: { id, state: 'pending' } },
    })
    expect(JSON.parse(answered?.body ?? '')).toMatchObject({
      event: 'approval.answered',
      data: { approval: { id, state: 'approved' } },
    })
    expect(JSON.stringify(await asking.admin.webhooks.list())).not.toContain(secret)
    expect(await settled(webhook.id)).toMatchObject({ lastError: null })
  })

  it('is told again after a failure, with the same event', async () => {
    await asking.admin.webhooks.create({ url, events: ['approval.pending'] })
    receiver.answer = (response) => void response.writeHead(receiver.taken.length < 2 ? 500 : 200).end()
    await needed(append(sandbox, {}, 'retried'))
    const [first, second] = await receiver.has(2)
    expect(second?.body).toBe(first?.body)
  })

  it('that answers too slowly is cut off, and told again', async () => {
    await asking.admin.webhooks.create({ url, events: ['approval.pending'] })
    const cut = new Promise<void>((resolve) => {
      receiver.answer = (response) => {
        if (receiver.taken.length > 1) response.end()
        else response.once('close', resolve)
      }
    })
    await needed(append(sandbox, {}, 'slow'))
    await cut
    await receiver.has(2)
  })

  it('is not followed elsewhere', async () => {
    const elsewhere = new Receiver()
    const target = await elsewhere.listen()
    await asking.admin.webhooks.create({ url, events: ['approval.pending'] })
    receiver.answer = (response) => void response.writeHead(307, { location: target }).end()
    await needed(append(sandbox, {}, 'redirected'))
    await receiver.has(2)
    expect(elsewhere.taken).toEqual([])
    await elsewhere.close()
  })

  it('is told only what it wants to hear', async () => {
    await asking.admin.webhooks.create({ url: `${url}/kill`, events: ['kill'] })
    await asking.admin.webhooks.create({ url: `${url}/asks`, events: ['approval.pending'] })
    await needed(append(sandbox, {}, 'chosen'))
    expect((await receiver.has(1)).map(({ path }) => path)).toEqual(['/asks'])
  })

  it('is for admins, not bound to agents, and bounded in number', async () => {
    const refused = asking.operator.webhooks.create({ url, events: ['kill'] })
    expect(await refusal(refused)).toMatchObject({ code: 'forbidden' })
    for (let n = 0; n < 16; n++) await asking.admin.webhooks.create({ url, events: ['kill'] })
    const more = asking.admin.webhooks.create({ url, events: ['kill'] })
    expect(await refusal(more)).toMatchObject({ code: 'too_many_webhooks' })
  })
})

describe('without webhook_private', () => {
  it.each([
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://localhost/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
    'https://[64:ff9b::7f00:1]/',
    'http://93.184.216.34/',
    'https://LOCALHOST./',
    'https://sandbox.localhost/',
    'https://localhost.localdomain/',
    'https://metadata.google.internal/',
    'https://93.184.216.34:0/',
  ])('%s is refused', async (target) => {
    strict ??= await startServer()
    const { admin } = new Asking(strict, asking.operator)
    const refused = admin.webhooks.create({ url: target, events: ['kill'] })
    expect(await refusal(refused)).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/^url: /) })
  })

  let strict: TestServer | undefined
  afterAll(async () => strict?.stop())
})

async function settled(id: string): Promise<Webhook> {
  const look = async () => {
    const webhook = await asking.admin.webhooks.get(id)
    return webhook.lastAt === null ? undefined : webhook
  }
  return waitFor(look, { signal: deadline(100_000), everyMs: 20 })
}
