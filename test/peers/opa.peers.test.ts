import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Opa } from '../../packages/control-plane/src/policies/opa.ts'
import { goInstall } from '../support/go.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

const MODULE = 'github.com/open-policy-agent/opa@v1.22.0'
const POLICIES = fileURLToPath(new URL('../../deploy/opa', import.meta.url))

/** A real OPA with the policies that we ship, on a port of loopback. */
class OpaServer {
  readonly url: string
  readonly #child: ChildProcess

  private constructor(url: string, child: ChildProcess) {
    this.url = url
    this.#child = child
  }

  static async start(program: string): Promise<OpaServer> {
    const port = await freePort()
    const address = `127.0.0.1:${port}`
    const args = [
      'run',
      '--server',
      '--disable-telemetry',
      '--log-level=error',
      '--addr',
      address,
      `${POLICIES}/airlock.rego`,
    ]
    const child = spawn(program, args, { stdio: 'ignore' })
    const url = `http://${address}`
    const answers = async () =>
      fetch(`${url}/health`).then(
        ({ ok }) => ok || undefined,
        () => undefined,
      )
    await waitFor(answers, { signal: deadline(100_000), everyMs: 100 })
    return new OpaServer(url, child)
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }
}

describe('Open Policy Agent', requires('root', 'go', 'go-proxy'), () => {
  let program: string
  let opa: OpaServer
  let server: TestServer
  let airlock: Airlock
  let admin: Airlock

  beforeAll(async () => {
    program = await goInstall('opa', MODULE)
    opa = await OpaServer.start(program)
    server = await startServer({ env: { OPA_URL: opa.url, AIRLOCK_OPA_TIMEOUT_MS: '5000' } })
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
    admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  }, 20 * 60_000)

  afterAll(async () => {
    await server?.stop()
    await opa?.stop()
  })

  it('finds the examples of the shipped policy right', () => {
    expect(execFileSync(program, ['test', POLICIES], { encoding: 'utf8' })).toMatch(/^PASS: (\d+)\/\1$/m)
    execFileSync(program, ['check', '--strict', POLICIES])
  })

  it('has a say in what is done, beside the policies', async () => {
    const sandbox = await airlock.sandboxes.create()
    await sandbox.files.write('a.pem', 'key')
    expect(await sandbox.run(['cat', 'a.pem'])).toMatchObject({ exitCode: 0 })
    await expect(sandbox.files.readText('a.pem')).rejects.toMatchObject({
      code: 'policy_denied',
      message: 'The rule opa/decision denies it: Keys of the house do not leave a sandbox.',
    })
    await expect(sandbox.run({ shell: 'rm -rf /' })).rejects.toMatchObject({
      code: 'policy_denied',
      message: expect.stringMatching(/^The rule builtin\//),
    })
    const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'file.read' })
    expect(items).toMatchObject([
      {
        status: 'denied',
        decision: { rules: [{ policy: 'opa' }], policyVersion: expect.stringMatching(/^builtin@\d+,opa$/) },
      },
    ])
    await sandbox.terminate()
  })

  it('bounds what it allows', async () => {
    await admin.agents.register('trainee-1', { approve: true })
    const sandbox = await airlock.sandboxes.create({ agent: 'trainee-1' })
    await sandbox.run(['true'])
    const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'command.run', status: 'requested' })
    expect(items).toMatchObject([
      { decision: { conditions: { maxTimeoutMs: 60_000 } }, payload: { timeoutMs: 60_000 } },
    ])
    await sandbox.terminate()
  })

  it('asks for a person', async () => {
    await expect(airlock.sandboxes.create({ limits: { cpus: 9 } })).rejects.toMatchObject({ code: 'approval_required' })
  })

  it('denies everything when it is gone', async () => {
    const sandbox = await airlock.sandboxes.create()
    await opa.stop()
    await expect(sandbox.run(['true'])).rejects.toMatchObject({
      code: 'policy_denied',
      message: expect.stringMatching(/^The rule opa\/unanswered denies it: OPA cannot be reached/),
    })
    expect((await airlock.guardian.status()).sources).toEqual([
      { name: 'opa', isHealthy: false, problem: 'OPA cannot be reached.' },
    ])
    await sandbox.terminate()
  })

  it('has no result where there is no such document', async () => {
    const other = await OpaServer.start(program)
    const source = new Opa({ url: other.url, path: 'v1/data/nothing/here', timeoutMs: 5000 })
    expect(await source.decide(QUESTION)).toMatchObject({
      effect: 'deny',
      rules: [{ rule: 'unanswered', reason: expect.stringContaining('OPA has no result') }],
    })
    await other.stop()
  })
})

const QUESTION = {
  point: 'command.run',
  tenant: 'default',
  actor: 'key:x',
  role: 'developer',
  agent: null,
  sandbox: null,
  operation: { kind: 'other', payload: {} },
} as const

async function freePort(): Promise<number> {
  const taken: Server = createServer()
  taken.listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  taken.close()
  await once(taken, 'close')
  return port
}
