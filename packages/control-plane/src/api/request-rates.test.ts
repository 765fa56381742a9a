import { isReducing, ROUTES, type Route } from '@airlock/contract'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from './testing/test-api.ts'

let api: TestApi
beforeEach(async () => {
  const slow = { perSecond: 0.1 }
  api = await startTestApi({}, 0, { perKey: { burst: 3, ...slow }, perTenant: { burst: 5, ...slow } })
})
afterEach(async () => api.close())

it('answers a key as often as its share allows, then says how long to wait; a tenant shares another', async () => {
  const statuses = []
  for (let at = 0; at < 5; at++) statuses.push((await ask(KEYS.developer, 'GET', '/v1/whoami')).status)
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  const refused = await ask(KEYS.developer, 'GET', '/v1/whoami')
  // Ten seconds for each request, less those since the first.
  expect(refused.headers.get('retry-after')).toMatch(/^(?:[1-9]|10)$/)
  expect(await refused.json()).toMatchObject({
    error: { code: 'too_many_requests', message: 'This key asks too often.', retryable: true },
  })
  const others = []
  for (let at = 0; at < 3; at++) others.push(await ask(KEYS.admin, 'GET', '/v1/whoami'))
  expect(others.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(await others[2]?.json()).toMatchObject({ error: { message: expect.stringContaining('tenant') } })
})

it('always hears what only takes away', async () => {
  for (let at = 0; at < 4; at++) await ask(KEYS.admin, 'GET', '/v1/whoami')
  const reducing = Object.values<Route>(ROUTES).filter(isReducing)
  expect(reducing.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['/v1/killswitch', '/v1/sandboxes/{id}/terminate', '/v1/keys/{id}/revoke']),
  )
  for (const { method, path } of reducing)
    expect([path, (await ask(KEYS.admin, method, path.replaceAll(/\{\w+\}/g, 'x'))).status]).not.toEqual([path, 429])
})

async function ask(key: string, method: string, path: string): Promise<Response> {
  return fetch(`${api.url}${path}`, { method, headers: { authorization: `Bearer ${key}` } })
}
