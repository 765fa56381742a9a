import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { Airlock } from './index.ts'

const SANDBOX = `sbx_${'1'.repeat(26)}`

let api: TestApi
let airlock: Airlock
beforeAll(async () => {
  api = await startTestApi()
  airlock = new Airlock({ url: api.url, apiKey: KEYS.developer })
})
afterAll(async () => api.close())

const sample = (second: number) => ({ event: 'sample', sandbox: SANDBOX, sample: { at: `00:00:0${second}` } })
const cpuAlert = (level: string) => ({ event: 'alert', alert: { sandbox: SANDBOX, resource: 'cpu', level } })
const ended = { event: 'ended', sandbox: SANDBOX }
const frames = (...events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')

/** A client of a server that answers these streams, one after the other. */
function clientOf(answers: readonly (string | Response)[]): Airlock {
  const left = [...answers]
  const fetch: typeof globalThis.fetch = async () => {
    const next = left.shift() ?? ''
    return typeof next === 'string' ? new Response(next) : next
  }
  return new Airlock({ url: 'http://127.0.0.1:1', apiKey: 'al_x', fetch })
}

describe('metrics', () => {
  it('are of the tenant, of an agent and of a sandbox', async () => {
    expect(await airlock.metrics.all({ agent: 'default' })).toMatchObject({
      tenant: 'default',
      total: { sandboxes: 1, cpuPercent: 50 },
      sandboxes: [{ sandbox: SANDBOX }],
      truncated: false,
    })
    const since = '2026-01-01T00:00:00Z'
    expect(await airlock.metrics.agent('default', { resolution: '1m', since })).toMatchObject({ agent: 'default' })
    expect(await airlock.metrics.sandbox(SANDBOX)).toMatchObject({ sandbox: SANDBOX, history: [{ samples: 12 }] })
    const wrong = { resolution: '1h' } as unknown as { resolution: '1m' }
    await expect(airlock.metrics.sandbox(SANDBOX, wrong)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('are followed until the sandbox has ended', async () => {
    const events = await Array.fromAsync(airlock.metrics.follow(SANDBOX))
    expect(events.map(({ event }) => event)).toEqual(['sample', 'cleared', 'ended'])
  })

  it('are told once, over breaks and errors that pass', async () => {
    const passing = { event: 'error', error: { code: 'not_ready', message: 'x', hint: '' } }
    const client = clientOf([
      frames(cpuAlert('warning'), sample(1)),
      frames(cpuAlert('warning'), sample(1), sample(2), passing),
      new Response('{"error":{"code":"not_ready","message":"x","hint":""}}', { status: 503 }),
      frames(cpuAlert('critical'), sample(2), ended),
    ])
    expect(await Array.fromAsync(client.metrics.follow(SANDBOX))).toEqual([
      cpuAlert('warning'),
      sample(1),
      sample(2),
      cpuAlert('critical'),
      ended,
    ])
  })

  it('throw what no patience helps, at the beginning and in the middle', async () => {
    const wrong = new Airlock({ url: api.url, apiKey: 'al_wrong' })
    await expect(wrong.metrics.follow(SANDBOX).next()).rejects.toMatchObject({ code: 'unauthenticated' })
    const refused = { event: 'error', error: { code: 'forbidden', message: 'no', hint: '' } }
    const client = clientOf([frames(sample(1), refused)])
    await expect(Array.fromAsync(client.metrics.follow(SANDBOX))).rejects.toMatchObject({ code: 'forbidden' })
  })
})
