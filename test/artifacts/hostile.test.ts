import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

const MIB = 1024 * 1024

let server: TestServer
let airlock: Airlock
let sandbox: Sandbox

beforeAll(async () => {
  const env = { AIRLOCK_ARTIFACT_MAX_MB: '2', AIRLOCK_ARTIFACT_QUOTA_MB: '8', AIRLOCK_ARTIFACT_QUOTA_COUNT: '60' }
  server = await startServer({ env })
  await switchShippedRulesOff(server)
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  sandbox = await airlock.sandboxes.create()
}, 240_000)
afterAll(async () => server?.stop())

const remove = async () => {
  for (;;) {
    const { items } = await airlock.artifacts.list({ limit: 200 })
    if (items.length === 0) return
    await Promise.all(items.map(async ({ id }) => airlock.artifacts.remove(id)))
  }
}
beforeEach(remove)

const sh = async (shell: string) => {
  const { exitCode, stderr } = await sandbox.run({ shell })
  expect([exitCode, stderr]).toEqual([0, ''])
}
const collect = async (...patterns: string[]) => airlock.artifacts.collect(sandbox.id, patterns)
const contentOf = async (id: string) =>
  Buffer.concat(await Array.fromAsync(airlock.artifacts.download(id))).toString('latin1')

/** Names of the bytes that the data plane keeps. */
const kept = () => {
  const root = join(server.home, 'data-plane', 'artifacts')
  const inside = (part: string) =>
    readdirSync(join(root, part)).flatMap((tenant) => readdirSync(join(root, part, tenant)))
  return { named: inside('named'), content: inside('content'), incoming: readdirSync(join(root, 'incoming')) }
}

describe('a hostile tree', () => {
  it('with links, FIFOs, sockets and devices gives its regular files alone', async () => {
    await sh(`mkdir -p h/sub && cd h && printf real > real && ln -s /etc/passwd link && ln -s / rootlink && ln -s ../h loop \
      && mkfifo fifo && ln -s /dev/zero zero && ln -s missing dangling && mkdir locked && touch locked/x && chmod 0 locked \
      && python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock')"`)
    const { items, skipped } = await collect('h/**')
    expect(items.map(({ name }) => name)).toEqual(['h/real'])
    const out = ['h/dangling', 'h/fifo', 'h/link', 'h/locked', 'h/loop', 'h/rootlink', 'h/sock', 'h/zero']
    expect(skipped.map(({ name }) => name).toSorted()).toEqual(out)
  })

  it('is not entered by a link in the middle of a pattern', async () => {
    await sh('mkdir -p m/real && printf x > m/real/x && ln -s real m/link && ln -s /etc m/etc')
    const { items, skipped } = await collect('m/link/x', 'm/etc/passwd', 'm/real/x', '/dev/**', '/proc/**', '/sys/**')
    expect(items.map(({ name }) => name)).toEqual(['m/real/x'])
    expect(skipped.map(({ name }) => name).toSorted()).toEqual(['m/etc', 'm/link'])
  })

  it('with a sparse terabyte keeps the file beside it', async () => {
    await sh('mkdir s && truncate -s 1T s/huge && printf small > s/small')
    const { items, skipped } = await collect('s/*')
    expect(items.map(({ name }) => name)).toEqual(['s/small'])
    expect(skipped).toEqual([{ name: 's/huge', why: expect.stringContaining('larger') }])
    expect(kept().named.length).toBe(1)
  })

  it('whose names are swapped for links while it is read leaks nothing', { timeout: 120_000 }, async () => {
    await sh('mkdir -p w/d && for i in $(seq 20); do printf mine > w/d/$i; done && cp -r w/d w/keep')
    const swapping = await sandbox.start({
      shell: `while :; do for i in $(seq 20); do ln -sfn /etc/passwd w/d/$i; rm -f w/d/$i; printf mine > w/d/$i; done
        mv w/d w/gone 2>/dev/null; ln -sfn /etc w/d; rm -f w/d; mv w/gone w/d; done`,
    })
    const seen = new Set<string>()
    for (let round = 0; round < 3; round++)
      for (const { id, name } of (await collect('w/d/*', 'w/keep/1')).items) {
        const text = await contentOf(id)
        seen.add(name === 'w/keep/1' ? `kept ${text}` : text)
      }
    await swapping.signal('SIGKILL')
    // Positive control: what stood still was always taken. A file that is just being written may be empty.
    expect(seen).toContain('kept mine')
    expect([...seen].filter((text) => !['mine', '', 'kept mine'].includes(text))).toEqual([])
  })
})

describe('a quota', () => {
  it('of bytes refuses more, and a refused collection leaves nothing', async () => {
    await sh('mkdir q && for i in 1 2 3 4 5; do head -c 2097152 /dev/urandom > q/$i; done')
    await expect(collect('q/*')).rejects.toMatchObject({ code: 'artifact_quota', status: 429 })
    expect([(await airlock.artifacts.list()).items, kept()]).toEqual([[], { named: [], content: [], incoming: [] }])
    for (let i = 0; i < 4; i++) await airlock.artifacts.upload(`u${i}`, Buffer.alloc(2 * MIB, i))
    await expect(airlock.artifacts.upload('more', 'x')).rejects.toMatchObject({ code: 'artifact_quota' })
    const job = await airlock.jobs.submit({ shell: 'printf x > x' }, { artifacts: ['x'] })
    await job.wait()
    expect(job.data).toMatchObject({ state: 'succeeded', artifacts: { count: 0, error: { code: 'artifact_quota' } } })
    await remove()
    await airlock.artifacts.upload('fits again', 'x')
  })

  it('of size refuses one that is larger, also when it does not say so', async () => {
    const large = Buffer.alloc(2 * MIB + 1)
    await expect(airlock.artifacts.upload('large', large)).rejects.toMatchObject({ code: 'artifact_too_large' })
    const stream = async function* () {
      yield large
    }
    await expect(airlock.artifacts.upload('large', stream())).rejects.toMatchObject({ code: 'artifact_too_large' })
    await expect(airlock.artifacts.upload('lies', stream(), { size: 1 })).rejects.toMatchObject({
      code: 'artifact_too_large',
    })
    expect(kept()).toEqual({ named: [], content: [], incoming: [] })
  })

  it('of count refuses the next one', async () => {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    await admin.tenants.create('many')
    const { secret } = await admin.keys.create({ name: 'many', role: 'admin', tenant: 'many' })
    const many = new Airlock({ url: server.url, apiKey: secret })
    const before = await many.artifacts.upload('x', 'x')
    // The quota of one tenant is not the other's.
    await expect(airlock.artifacts.get(before.id)).rejects.toMatchObject({ code: 'artifact_not_found' })
    await sh('mkdir c && cd c && seq 20 | xargs touch')
    await collect('c/*')
    await sh('mkdir c2 && cd c2 && seq 41 | xargs touch')
    await expect(collect('c2/*')).rejects.toMatchObject({ code: 'artifact_quota' })
    await many.artifacts.upload('y', 'y')
  })
})
