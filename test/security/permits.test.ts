import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { DEFAULTS, permit, type Permit, signPermit } from '@airlock/contract'
import { Airlock } from '@airlock/sdk'
import { deadline, newId, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askDataPlane } from '../support/data-plane-socket.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { leftovers, startServer, type TestServer } from '../support/server.ts'

/** Whoever reaches the socket of the data plane still needs a permit that the control plane signed, for this, here, now and once. */
describe('permits at the socket of the data plane', requires('root'), () => {
  let server: TestServer
  let ours: KeyObject
  beforeAll(async () => {
    server = await startServer()
    ours = createPrivateKey(readFileSync(`${server.home}/control-plane/permit.key`))
  }, 240_000)
  afterAll(async () => server?.stop())

  const good = (): Permit => ({
    permitId: newId('pmt'),
    sandbox: newId('sbx'),
    node: readFileSync(`${server.home}/public/node`, 'utf8'),
    tenant: 'default',
    agent: 'default',
    generation: 1,
    template: 'base',
    image: 'host',
    tier: 'standard',
    limits: {
      memoryBytes: DEFAULTS.memoryBytes.default,
      cpus: DEFAULTS.cpus.default,
      pids: DEFAULTS.pids.default,
      diskBytes: DEFAULTS.diskBytes.min,
      inodes: DEFAULTS.inodes.min,
      openFiles: DEFAULTS.openFiles.default,
      cpuSeconds: null,
    },
    env: {},
    mounts: [],
    doors: [],
    conditions: {},
    policyVersion: 'builtin@1',
    reservation: newId('rsv'),
    expiresAt: Date.now() + 60_000,
    endsAt: Date.now() + 600_000,
  })

  const send = async (token: string) => askDataPlane(server.home, 'POST', '/sandboxes', { permit: token })

  const expectNothing = async (token: string, message: string): Promise<void> => {
    const before = await living()
    expect(await send(token)).toEqual({ status: 500, json: { error: { code: 'permit_rejected', message } } })
    expect(await living()).toEqual(before)
  }
  /** What the data plane knows, and what the host shows of sandboxes. */
  const living = async () => ({
    known: (await askDataPlane(server.home, 'GET', '/sandboxes')).json,
    host: await leftovers(server.home),
  })

  /** Holds the control plane meanwhile: it would remove what has no row of its own. */
  const unswept = async <T>(work: () => Promise<T>): Promise<T> => {
    const controlPlane = pidOf(server.home, 'control-plane') ?? expect.fail('no control plane')
    process.kill(controlPlane, 'SIGSTOP')
    try {
      return await work()
    } finally {
      process.kill(controlPlane, 'SIGCONT')
    }
  }

  it('starts what a good one says: the control of all that follows', async () => {
    const { sandbox, ...rest } = good()
    const [answer, removed] = await unswept(async () => [
      await send(signPermit({ sandbox, ...rest }, ours)),
      await askDataPlane(server.home, 'DELETE', `/sandboxes/${sandbox}`),
    ])
    expect(answer).toMatchObject({ status: 200, json: { id: sandbox } })
    expect(removed?.status).toBe(200)
    expect(await living()).toEqual({ known: { sandboxes: [] }, host: [] })
  })

  it('refuses one that another key signed', async () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    await expectNothing(signPermit(good(), privateKey), 'The permit is not signed by our control plane.')
  })

  it.each(Object.keys(permit.shape))('refuses one whose %s was altered after it was signed', async (field) => {
    const [payload = '', signature = ''] = signPermit(good(), ours).split('.')
    const signed = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
    expect(Object.keys(signed)).toContain(field)
    const altered = Buffer.from(JSON.stringify({ ...signed, [field]: 'altered' })).toString('base64url')
    await expectNothing(`${altered}.${signature}`, 'The permit is not signed by our control plane.')
  })

  it('refuses one that has expired', async () => {
    await expectNothing(signPermit({ ...good(), expiresAt: Date.now() - 1 }, ours), 'The permit has expired.')
  })

  it('refuses one for another node', async () => {
    await expectNothing(signPermit({ ...good(), node: 'elsewhere' }, ours), 'The permit is for another node.')
  })

  it('refuses one with a field that it does not know', async () => {
    const more = { ...good(), privileged: true }
    await expectNothing(signPermit(more, ours), 'The permit is malformed.')
  })

  it('refuses one that was used before, also when its sandbox has ended', async () => {
    const once = good()
    const token = signPermit(once, ours)
    const [first, second] = await unswept(async () => [await send(token), await send(token)] as const)
    expect(first.status).toBe(200)
    expect(second).toMatchObject({ status: 500, json: { error: { code: 'permit_rejected' } } })
    await askDataPlane(server.home, 'DELETE', `/sandboxes/${once.sandbox}`)
    await expectNothing(token, 'The permit was used before.')
  })

  it('refuses one of an old generation beside a sandbox of a newer one', async () => {
    const { sandboxes } = new Airlock({ url: server.url, apiKey: server.developerKey })
    const box = await sandboxes.create()
    const { generation } = box.data
    const old = signPermit({ ...good(), generation: generation - 1 }, ours)
    await expectNothing(old, 'The permit is of an old generation of its agent.')
    await box.terminate()
  })

  it('refuses one from before a kill of its agent, and takes a later one', async () => {
    const { killswitch } = new Airlock({ url: server.url, apiKey: server.adminKey })
    const [first, second] = [signPermit(good(), ours), signPermit(good(), ours)]
    await killswitch.on({ scope: 'agent', target: 'default' })
    await expectNothing(first, 'The permit is from before a kill.')
    await killswitch.lift({ scope: 'agent', target: 'default' })
    await expectNothing(second, 'The permit is from before a kill.')
    const after = { ...good(), expiresAt: Date.now() + 61_000 }
    // It is taken; without a row the sweep may remove it before it is up.
    expect((await send(signPermit(after, ours))).json).not.toMatchObject({ error: { code: 'permit_rejected' } })
    await askDataPlane(server.home, 'DELETE', `/sandboxes/${after.sandbox}`)
  })

  it('writes every refusal down, in the evidence of the server', async () => {
    const refusals = () => evidence(server.home).filter((record) => record.point === 'permit.refuse').length
    // Each altered field, and the nine refusals of the others.
    const count = Object.keys(permit.shape).length + 9
    const signal = deadline(100_000)
    expect(await waitFor(() => (refusals() >= count ? refusals() : undefined), { signal, everyMs: 50 })).toBe(count)
  })
})

function evidence(home: string): readonly { readonly point?: string }[] {
  const files = readdirSync(`${home}/recorder`, { recursive: true, encoding: 'utf8' })
  return files
    .filter((name) => name.endsWith('.ndjson'))
    .flatMap((name) => readFileSync(`${home}/recorder/${name}`, 'utf8').trim().split('\n'))
    .map((line) => JSON.parse(line) as { readonly point?: string })
}
