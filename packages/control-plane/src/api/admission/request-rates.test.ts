import { isReducing, ROUTES, type Route } from '@airlock/contract'
import { afterEach, expect, it } from 'vitest'
import type { RequestRateBounds } from './request-rates.ts'
import { KEYS, startTestApi, type TestApi } from '../testing/test-api.ts'

let api: TestApi | undefined
afterEach(async () => api?.close())

it('answers a key as often as its share allows, then says how long to wait; a tenant shares another', async () => {
  await start({ perKey: { burst: 3, perSecond: 0.1 }, perTenant: { burst: 5, perSecond: 0.1 } })
  const own = await askOften(5, KEYS.developer)
  expect(sortedStatuses(own)).toEqual([200, 200, 200, 429, 429])
  const refused = own.find(({ status }) => status === 429)
  // Ten seconds for each request, less those since the first and those that it was held back.
  expect(refused?.headers.get('retry-after')).toMatch(/^[1-8]$/)
  expect(await refused?.json()).toMatchObject({
    error: { code: 'too_many_requests', message: 'This key asks too often.', retryable: true },
  })
  const others = await askOften(3, KEYS.admin)
  expect(sortedStatuses(others)).toEqual([200, 200, 429])
  expect(await others.find(({ status }) => status === 429)?.json()).toMatchObject({
    error: { message: expect.stringContaining('tenant') },
  })
})

it('holds a key back that asks a little too often, and refuses nothing', async () => {
  const rate = { burst: 1, perSecond: 10 }
  await start({ perKey: rate, perTenant: rate })
  const answers = await askOften(5, KEYS.developer)
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
})

it('delays the refusals of one key, and nobody else', async () => {
  const rate = { burst: 1, perSecond: 0.1 }
  await start({ perKey: rate, perTenant: { burst: 100, perSecond: 100 } })
  await ask(KEYS.developer, 'GET', '/v1/whoami')
  const order: number[] = []
  const note = async (answer: Promise<Response>) => order.push((await answer).status)
  const refused = note(ask(KEYS.developer, 'GET', '/v1/whoami'))
  await note(ask(KEYS.admin, 'GET', '/v1/whoami'))
  await refused
  expect(order).toEqual([200, 429])
})

it('always hears what only takes away', async () => {
  await start({ perKey: { burst: 1, perSecond: 0.1 }, perTenant: { burst: 100, perSecond: 100 } })
  expect(sortedStatuses(await askOften(2, KEYS.admin))).toEqual([200, 429])
  const reducing = Object.values<Route>(ROUTES).filter(isReducing)
  expect(reducing.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['/v1/killswitch', '/v1/sandboxes/{id}/terminate', '/v1/keys/{id}/revoke']),
  )
  for (const { method, path } of reducing)
    expect([path, (await ask(KEYS.admin, method, path.replaceAll(/\{\w+\}/g, 'x'))).status]).not.toEqual([path, 429])
})

async function start(rates: RequestRateBounds): Promise<void> {
  api = await startTestApi({}, 0, rates)
}

function sortedStatuses(answers: readonly Response[]): readonly number[] {
  return answers.map(({ status }) => status).toSorted((a, b) => a - b)
}

/** All at once. */
async function askOften(count: number, key: string): Promise<readonly Response[]> {
  return Promise.all(Array.from({ length: count }, async () => ask(key, 'GET', '/v1/whoami')))
}

async function ask(key: string, method: string, path: string): Promise<Response> {
  return fetch(`${api?.url}${path}`, { method, headers: { authorization: `Bearer ${key}` } })
}
