import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NewRecord, WebhookEvent } from '@airlock/contract'
import { createLog, systemClock } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openStore, type Store } from '../store/engine/store.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { findWebhook, insertWebhook, takeWebhook } from '../store/webhooks.ts'
import { WebhookQueue } from './queue.ts'

const ID = `whk_${'0'.repeat(26)}`

let directory: string
let store: Store
let server: Server
let url: string
let records: NewRecord[]
/** The bodies that the receiver got. */
let got: string[]
let answer: (response: ServerResponse) => void
let queue: WebhookQueue

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'airlock-webhooks-'))
  store = await openStore({ file: join(directory, 'airlock.db') })
  await store.query((db) => insertTenantIfAbsent(db, { id: 'acme', createdAt: 1 }))
  records = []
  got = []
  answer = (response) => void response.end()
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      got.push(body)
      answer(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/`
  queue = makeQueue(true)
  await add(ID, ['kill'])
})

afterEach(async () => {
  await queue.stop()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await store.close()
  rmSync(directory, { recursive: true, force: true })
})

it('is in order, each event once', async () => {
  for (let n = 0; n < 20; n++) queue.send('acme', 'kill', { n })
  await expect.poll(() => got.length).toBe(20)
  expect(got.map((body) => (JSON.parse(body) as { data: { n: number } }).data.n)).toEqual([...Array(20).keys()])
  await expect.poll(last).toMatchObject({ lastError: null })
  expect(records).toEqual([])
})

it('is given up after four tries, with a record that says why', async () => {
  answer = (response) => void response.writeHead(503).end()
  queue.send('acme', 'kill', {})
  await expect.poll(() => records.length).toBe(1)
  expect(got).toHaveLength(4)
  const { id } = JSON.parse(got[0] ?? '') as { id: string }
  const error = { code: 'server_unreachable', message: 'It answered 503.' }
  const payload = { webhook: ID, event: 'kill', delivery: id }
  const said = { tenant: 'acme', actor: 'system', point: 'webhook.deliver', status: 'failed', error, payload }
  expect(records).toEqual([said])
  await expect.poll(last).toMatchObject({ lastError: 'It answered 503.' })
})

it('keeps a bounded number that wait for one receiver, and lets others through', async () => {
  const held: ServerResponse[] = []
  answer = (response) => void held.push(response)
  for (let n = 0; n < 110; n++) queue.send('acme', 'kill', { n })
  await expect.poll(() => records.length).toBe(10)
  await add(`whk_${'1'.repeat(26)}`, ['kill'])
  queue.send('acme', 'kill', { other: true })
  await expect.poll(() => got.some((body) => body.includes('"other":true'))).toBe(true)
})

it('tells nothing to a webhook that was removed meanwhile, nor to another tenant', async () => {
  const held: ServerResponse[] = []
  answer = (response) => void held.push(response)
  queue.send('acme', 'kill', { n: 1 })
  queue.send('acme', 'kill', { n: 2 })
  queue.send('globex', 'kill', { n: 3 })
  await expect.poll(() => held.length).toBe(1)
  await store.query((db) => takeWebhook(db, { tenant: 'acme', id: ID }))
  held[0]?.end()
  await queue.stop()
  expect(got).toHaveLength(1)
})

it('goes to no private address, whatever was allowed when it was made', async () => {
  queue = makeQueue(false)
  queue.send('acme', 'kill', {})
  await expect.poll(() => records.length).toBe(1)
  expect(records[0]?.error).toEqual({ code: 'forbidden', message: '127.0.0.1 is not at a public address.' })
  expect(got).toEqual([])
})

it('is cut when the server stops', async () => {
  answer = () => {
    // It never answers.
  }
  queue.send('acme', 'kill', {})
  await expect.poll(() => got.length).toBe(1)
  await queue.stop()
  expect(records).toMatchObject([{ status: 'failed', error: { code: 'not_ready' } }])
  queue.send('acme', 'kill', {})
  expect(got).toHaveLength(1)
})

function makeQueue(allowsPrivate: boolean): WebhookQueue {
  const note = (record: NewRecord) => void records.push(record)
  const audit = { require: async () => {}, note, flush: async () => {} }
  const log = createLog({ process: 'test', level: 'silent', write: () => {} })
  return new WebhookQueue({ store, audit, log, clock: systemClock, allowsPrivate, pausesMs: [1, 1, 1] })
}

async function add(id: string, events: WebhookEvent[]): Promise<void> {
  const made = { createdAt: 1, createdBy: 'key:a', lastAt: null, lastError: null }
  await store.query((db) => insertWebhook(db, { id, tenant: 'acme', url, events, secret: 'whs_x', ...made }))
}

async function last() {
  return store.query((db) => findWebhook(db, { tenant: 'acme', id: ID }))
}
