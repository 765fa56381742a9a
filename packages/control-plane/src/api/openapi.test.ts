import { ROUTES } from '@airlock/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from './testing/test-api.ts'

let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(async () => api.close())

describe('what the server says about itself', () => {
  it('documents every route of the table as OpenAPI 3.1, with no reference that leads nowhere', async () => {
    const response = await fetch(`${api.url}/openapi.json`)
    const text = await response.text()
    const document = JSON.parse(text) as {
      openapi: string
      paths: Record<string, Record<string, { operationId: string }>>
      components: { schemas: Record<string, unknown> }
    }
    expect(document.openapi).toBe('3.1.0')
    const operations = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map((one) => one.operationId),
    )
    expect(operations.toSorted()).toEqual(Object.keys(ROUTES).toSorted())
    for (const [, name] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
      expect(document.components.schemas).toHaveProperty(name ?? '')
    expect(text).not.toContain('$defs')
  })

  it('tells generators which server, which subject and which schema', async () => {
    const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as {
      servers: unknown[]
      tags: { name: string; description: string }[]
      paths: Record<string, Record<string, { tags: string[]; requestBody?: unknown; responses: { 200?: unknown } }>>
    }
    expect(document.servers[0]).toMatchObject({ url: '/' })
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
    const used = operations.flatMap((one) => one.tags)
    expect(used).toHaveLength(operations.length)
    expect([...new Set(used)].toSorted()).toEqual(document.tags.map(({ name }) => name).toSorted())
    expect(used.filter((tag) => tag === 'Server').length).toBeLessThan(10)
    // A body or an answer without a name becomes one class per use.
    const unnamed = operations.filter((one) => /"schema":\{"type":"object"/.test(JSON.stringify(one)))
    expect(unnamed).toEqual([])
    expect(document.paths['/v1/sandboxes']?.['post']).toMatchObject({
      tags: ['Sandboxes'],
      'x-airlock-repeats': 'unsafe',
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/CreateSandboxBody' } } } },
      responses: {
        200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/CreatedSandbox' } } } },
      },
    })
  })

  it('has a page to read that loads nothing and runs nothing', async () => {
    const response = await fetch(`${api.url}/docs`)
    const text = await response.text()
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(text).not.toMatch(/<script|<link|<img|https?:\/\//)
    for (const name of Object.keys(ROUTES)) expect(text).toContain(`id="${name}"`)
  })

  it('counts requests and sandboxes for those who operate it', async () => {
    const headers = { authorization: `Bearer ${KEYS.admin}` }
    await fetch(`${api.url}/v1/sandboxes`, { method: 'POST', headers })
    const text = await (await fetch(`${api.url}/metrics`, { headers })).text()
    expect(text).toContain('airlock_sandboxes{state="active"} 1')
    expect(text).toContain('airlock_http_requests_total{route="createSandbox",status="200"} 1')
    expect(text).toContain('airlock_http_request_duration_seconds_count{route="createSandbox"} 1')
    expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
  })

  it('is healthy while it lives and ready while it can create', async () => {
    expect(await (await fetch(`${api.url}/healthz`)).json()).toEqual({ status: 'ok' })
    expect(await (await fetch(`${api.url}/readyz`)).json()).toEqual({ status: 'ready' })
    api.core.ready = { ready: false, reason: 'The data plane does not answer.' }
    const response = await fetch(`${api.url}/readyz`)
    api.core.ready = { ready: true, warnings: ['host_disk_low'] }
    expect(await (await fetch(`${api.url}/readyz`)).json()).toEqual({ status: 'ready', warnings: ['host_disk_low'] })
    api.core.ready = { ready: true, warnings: [] }
    expect([response.status, await response.json()]).toMatchObject([
      503,
      { error: { code: 'not_ready', message: 'The data plane does not answer.' } },
    ])
  })
})
