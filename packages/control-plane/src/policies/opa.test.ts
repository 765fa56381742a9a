import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Question } from '@airlock/contract'
import { afterEach, describe, expect, it } from 'vitest'
import { Opa } from './opa.ts'

const QUESTION: Question = {
  point: 'command.run',
  tenant: 'acme',
  actor: 'key:x',
  role: 'developer',
  agent: 'a',
  sandbox: 'sbx_1',
  operation: { kind: 'command', argv: ['ls'], cwd: '/workspace', env: [], timeoutMs: 1000 },
}

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

/** Something in the place of OPA, which answers as the test says; what a real one answers is tested where one can be built. */
async function answering(
  answer: (response: ServerResponse, request: IncomingMessage) => void,
  timeoutMs = 30_000,
): Promise<Opa> {
  server = createServer((request, response) => answer(response, request))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return new Opa({ url: `http://127.0.0.1:${port}/`, path: '/v1/data/airlock/decision', timeoutMs })
}

const says = async (result: unknown) => answering((response) => response.end(JSON.stringify({ result })))
const denial = (reason: string) => ({
  effect: 'deny',
  risk: 'medium',
  rules: [
    {
      policy: 'opa',
      rule: 'unanswered',
      effect: 'deny',
      risk: 'medium',
      reason: `${reason} What it does not allow is denied.`,
    },
  ],
  conditions: {},
  policyVersion: 'opa',
})

describe('OPA', () => {
  it('is sent the question as its input', async () => {
    const asked: unknown[] = []
    const opa = await answering((response, request) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        asked.push([request.method, request.url, JSON.parse(Buffer.concat(chunks).toString())])
        response.end('{"result": {"allow": true}}')
      })
    })
    expect(await opa.decide(QUESTION)).toEqual({
      effect: 'allow',
      risk: 'low',
      rules: [],
      conditions: {},
      policyVersion: 'opa',
    })
    expect(asked).toEqual([['POST', '/v1/data/airlock/decision', { input: QUESTION }]])
    expect(opa.health()).toEqual({ isHealthy: true, problem: null })
  })

  it('answers a whole decision, each of its reasons a rule', async () => {
    const opa = await says({
      effect: 'ask',
      risk: 'critical',
      reasons: ['One.', 'Two.'],
      conditions: { readOnly: true },
    })
    const rule = { policy: 'opa', rule: 'decision', effect: 'ask', risk: 'critical' }
    expect(await opa.decide(QUESTION)).toEqual({
      effect: 'ask',
      risk: 'critical',
      rules: [
        { ...rule, reason: 'One.' },
        { ...rule, reason: 'Two.' },
      ],
      conditions: { readOnly: true },
      policyVersion: 'opa',
    })
  })

  it('says why, or that there is no reason', async () => {
    const withReason = await says({ allow: false, reason: 'No.' })
    expect((await withReason.decide(QUESTION)).rules).toMatchObject([{ effect: 'deny', reason: 'No.' }])
    server?.close()
    const without = await says({ effect: 'deny' })
    expect((await without.decide(QUESTION)).rules).toMatchObject([{ effect: 'deny', reason: 'OPA gives no reason.' }])
  })

  it('puts no secret of its reasons on record', async () => {
    const opa = await says({ effect: 'deny', reasons: ['Bearer eyJhbGciOiJIUzI1NiJ9.e30.abcdefghijklmnop is bad'] })
    expect((await opa.decide(QUESTION)).rules[0]?.reason).not.toContain('abcdefghijklmnop')
  })
})

describe('OPA fails closed', () => {
  it.each([
    ['something else', { effect: 'maybe' }],
    ['more than a decision', { effect: 'allow', extra: 1 }],
    ['both forms', { effect: 'allow', allow: true }],
    ['a condition that we cannot keep', { effect: 'allow', conditions: { noNetwork: true } }],
    ['a text', 'allow'],
    ['true', true],
    ['null', null],
  ])('when it answers %s', async (_what, result) => {
    const opa = await says(result)
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA answered something that is not a decision.'))
    expect(opa.health()).toEqual({ isHealthy: false, problem: 'OPA answered something that is not a decision.' })
  })

  it('when it has no result', async () => {
    const opa = await answering((response) => response.end('{}'))
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA has no result at /v1/data/airlock/decision.'))
  })

  it('when it answers no JSON, an error, or too much', async () => {
    let opa = await answering((response) => response.end('allow'))
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA did not answer JSON.'))
    server?.close()
    opa = await answering((response) => response.writeHead(500).end('{"result": {"allow": true}}'))
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA answered 500.'))
    server?.close()
    opa = await answering((response) =>
      response.end(JSON.stringify({ result: { allow: true }, x: 'x'.repeat(70_000) })),
    )
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA answered too much.'))
  })

  it('when it does not answer in time, sends elsewhere, or is not there', async () => {
    let opa = await answering(() => {}, 200)
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA did not answer within 200 ms.'))
    server?.closeAllConnections()
    server?.close()
    opa = await answering((response, request) => {
      if (request.url === '/elsewhere') return void response.end('{"result": {"allow": true}}')
      response.writeHead(307, { location: '/elsewhere' }).end()
    })
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA cannot be reached.'))
    opa = new Opa({ url: 'http://127.0.0.1:9', path: 'x', timeoutMs: 200 })
    expect(await opa.decide(QUESTION)).toEqual(denial('OPA cannot be reached.'))
  })
})
