import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { type Damage, damageFile } from './damaged-home.ts'

/** Six of the classes of `damaged-files.long.test.ts`, all at once: none of them harms what another is about. */
describe('a server with six damaged files', requires('root', 'crun'), () => {
  let home: string
  let server: TestServer
  let acme: string
  /** One whose state is damaged, one whose commands cannot be read, and one that is as it was. */
  let [damaged, unreadable, whole]: Sandbox[] = []

  const admin = () => new Airlock({ url: server.url, apiKey: server.adminKey })
  const damage = (path: string, how: Damage) => void damageFile(join(home, path), how)
  const again = async (sandbox: Sandbox | undefined) => admin().sandboxes.get(sandbox?.id ?? '')

  beforeAll(async () => {
    server = await startServer()
    home = server.home
    await admin().tenants.create('acme')
    acme = (await admin().keys.create({ name: 'admin', role: 'admin', tenant: 'acme' })).secret
    ;[damaged, unreadable, whole] = await Promise.all([1, 2, 3].map(async () => admin().sandboxes.create({})))
    await unreadable?.run(['true'])
    await (await new Airlock({ url: server.url, apiKey: acme }).sandboxes.create({})).terminate()
    await server.stop('SIGTERM')
    damage('public/clock.json', 'emptied')
    damage(`data-plane/sandboxes/${damaged?.id}/sandbox.json`, 'cut in half')
    const journal = join(home, `data-plane/sandboxes/${unreadable?.id}/commands/journal.ndjson`)
    rmSync(journal)
    mkdirSync(journal)
    damage('recorder/chains/acme/head.json', 'filled with NULs')
    const image = readdirSync(join(home, 'data-plane/images')).find((name) => name.startsWith('host-'))
    damage(`data-plane/images/${image}/rootfs/etc/passwd`, 'emptied')
    const [program] = readdirSync(join(home, 'data-plane/programs'))
    damage(`data-plane/programs/${program}/inside/guest.cjs`, 'cut in half')
    server = await startServer({ home })
  })
  afterAll(async () => {
    await server?.stop('SIGINT')
    rmSync(home, { recursive: true, force: true })
  })

  it('starts, and says of each what became of it', async () => {
    expect(await (await fetch(`${server.url}/readyz`)).json()).toEqual({
      status: 'ready',
      warnings: ['evidence_broken'],
    })
    const said = server.logs()
    expect(said).toContain('public/clock.json cannot be read')
    expect(said).toContain('the evidence of a tenant is broken: nothing is granted to it')
    expect(said).toContain('replaced a damaged file that sandboxes stand on')
    expect(said).toContain('replacing damaged files that sandboxes are started from')
    expect(said.match(/a sandbox ended because its files on the host are damaged/gu)).toHaveLength(2)
  })

  it('ends the sandboxes whose files cannot be used, leaves nothing of them, and says why', async () => {
    for (const sandbox of [damaged, unreadable]) {
      const { state, endReason, error } = (await again(sandbox)).data
      expect([state, endReason, error?.code]).toEqual(['error', 'guest_lost', 'state_damaged'])
      expect(server.processesOf(sandbox?.id ?? '')).toEqual([])
      const { items } = await admin().audit.events({ sandbox: sandbox?.id ?? '', point: 'sandbox.terminate' })
      expect(items.find(({ status }) => status === 'done')).toMatchObject({ error: { code: 'state_damaged' } })
    }
  })

  it('keeps the other sandbox, and starts new ones from what it repaired', async () => {
    expect(await (await again(whole)).run(['echo', 'here'])).toMatchObject({ stdout: 'here\n' })
    await using fresh = await admin().sandboxes.create({})
    expect(await fresh.run(['id', '-un'])).toMatchObject({ stdout: 'user\n' })
    expect(JSON.parse(readFileSync(join(home, 'public/clock.json'), 'utf8'))).toMatchObject({
      bootedAt: expect.any(Number),
    })
  })

  it('grants nothing to the tenant whose evidence is damaged until that is set aside', async () => {
    const theirs = new Airlock({ url: server.url, apiKey: acme })
    await expect(theirs.sandboxes.create({})).rejects.toMatchObject({ code: 'evidence_broken' })
    await admin().audit.quarantine('acme')
    await (await theirs.sandboxes.create({})).terminate()
  })
})
