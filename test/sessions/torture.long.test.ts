import type { Sandbox, StepResult } from '@airlock/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  brokenPromises,
  torture,
  type TortureResult,
  type TortureTarget,
} from '../../packages/guest/src/session/testing/torture.ts'
import { SAMPLED } from '../support/sampled-tables.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'
import { SessionsHttp } from './http.ts'

let server: TestServer
let http: SessionsHttp
let sandbox: Sandbox

beforeAll(async () => {
  server = await startServer()
  await switchShippedRulesOff(server)
  http = new SessionsHttp(server)
  sandbox = (await http.send<Sandbox>('POST', '/v1/sandboxes', { template: 'base' })).body
})
afterAll(async () => {
  await server?.stop('SIGINT')
})

const tables = { python: SAMPLED.torturePython, node: SAMPLED.tortureNode, bash: SAMPLED.tortureBash } as const

describe.each(['python', 'node', 'bash'] as const)('a %s session in a sandbox whose code', (runtime) => {
  it.each(tables[runtime].sample())('$name leaves the next step intact', async ({ attack }) => {
    const { id } = await http.open({ runtime, sandbox: sandbox.id })
    const target: TortureTarget = {
      run: async (code, options) => toResult(await http.run(id, { code, ...options })),
      interrupt: async () => {
        await http.send('POST', `/v1/sessions/${id}/interrupt`)
      },
    }
    try {
      const report = await torture(runtime, target, attack)
      expect(report.next).toEqual(report.wanted)
      expect(brokenPromises(attack, report)).toEqual([])
      expect(report.attack).toMatchObject(attack.expected ?? {})
    } finally {
      await http.send('POST', `/v1/sessions/${id}/terminate`)
    }
  })
})

function toResult({ status, stdout, stderr, error, restarted }: StepResult): TortureResult {
  if (status !== 'completed' && status !== 'failed') throw new TypeError(`it is ${status}`)
  return { status, stdout, stderr, error: error?.name ?? null, restarted }
}
