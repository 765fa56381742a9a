import { verifyExport } from '@airlock/audit'
import type { SignedHead } from '@airlock/contract'
import { Airlock } from '@airlock/sdk'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { documentedCommands } from '../support/documented.ts'
import { sweep } from '../support/leftovers.ts'
import { linesOf } from '../support/lines.ts'
import { TestPostgres } from '../support/postgres.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

const CONTROL_PLANE_UID = 1_879_048_193

let backup: string
const homes: string[] = []
beforeEach(() => (backup = mkdtempSync(join(tmpdir(), 'al-backup-'))))
afterEach(async () => {
  for (const home of homes.splice(0)) {
    await sweep(home)
    rmSync(home, { recursive: true, force: true })
  }
  rmSync(backup, { recursive: true, force: true })
})

/** The steps of docs/backup.md for the files of a home. The store comes before: evidence may be newer, never older. */
function saveFiles(home: string): void {
  const places = { '/var/lib/airlock': home, '/backup': backup }
  const commands = documentedCommands('backup.md', 'files.tar --exclude', places)
  // 1: a file grew while it was read, as evidence does.
  expect([0, 1]).toContain(spawnSync('sh', ['-uc', `umask 022\n${commands}`]).status)
  expect(statSync(join(backup, 'files.tar')).mode & 0o777).toBe(0o600)
}

function restoreFiles(): string {
  const home = mkdtempSync(join(tmpdir(), 'al-'))
  homes.push(home)
  chmodSync(home, 0o711)
  execFileSync('tar', ['-C', home, '-xpf', join(backup, 'files.tar')])
  return home
}

/** As a machine does: every process at once, those in sandboxes too. */
async function die(server: TestServer): Promise<void> {
  await server.kill9()
  await sweep(server.home)
}

function users(server: TestServer): { readonly airlock: Airlock; readonly admin: Airlock } {
  return {
    airlock: new Airlock({ url: server.url, apiKey: server.developerKey }),
    admin: new Airlock({ url: server.url, apiKey: server.adminKey }),
  }
}

async function expectWhole(admin: Airlock, head: SignedHead): Promise<void> {
  const { publicKey } = await admin.audit.head()
  expect(await verifyExport(linesOf(admin.audit.export()), { publicKey, head })).toMatchObject({ ok: true })
}

interface Kind {
  readonly name: string
  readonly needs: ReturnType<typeof requires>
  start(): Promise<void>
  /** The environment of a new server. */
  make(): Promise<Record<string, string>>
  save(env: Record<string, string>, home: string): Promise<void>
  /** Puts the store back. Answers the environment of the server that uses it. */
  restore(home: string): Promise<Record<string, string>>
  stop(): Promise<void>
}

const SQLITE: Kind = {
  name: 'SQLite',
  needs: requires('root'),
  start: async () => {},
  make: async () => ({}),
  save: async (_env, home) => {
    const database = new DatabaseSync(join(home, 'control-plane/airlock.db'))
    database.prepare('vacuum into ?').run(join(backup, 'airlock.db'))
    database.close()
  },
  restore: async (home) => {
    const path = join(home, 'control-plane/airlock.db')
    mkdirSync(join(home, 'control-plane'), { recursive: true })
    copyFileSync(join(backup, 'airlock.db'), path)
    chownSync(path, CONTROL_PLANE_UID, CONTROL_PLANE_UID)
    chmodSync(path, 0o600)
    return {}
  },
  stop: async () => {},
}

let postgres: TestPostgres
const databaseOf = (url = '') => new URL(url).pathname.slice(1)
const POSTGRES: Kind = {
  name: 'PostgreSQL',
  needs: requires('root', 'postgres'),
  start: async () => void (postgres = await TestPostgres.start()),
  make: async () => ({ DATABASE_URL: await postgres.createDatabase() }),
  save: async (env) => {
    const to = join(backup, 'airlock.dump')
    await postgres.program('pg_dump', ['-Fc', '-d', databaseOf(env['DATABASE_URL']), '-f', to])
  },
  restore: async () => {
    const url = await postgres.createDatabase()
    await postgres.program('pg_restore', ['--no-owner', '-d', databaseOf(url), join(backup, 'airlock.dump')])
    return { DATABASE_URL: url }
  },
  stop: async () => postgres?.stop(),
}

for (const kind of [SQLITE, POSTGRES])
  describe(`a backup on ${kind.name}`, kind.needs, () => {
    beforeAll(() => kind.start())
    afterAll(() => kind.stop())

    it('that was made while the server worked is a server again, in a new home', async () => {
      const env = await kind.make()
      const server = await startServer({ env })
      const { airlock, admin } = users(server)
      const kept = await airlock.sandboxes.create({ name: 'kept' })
      await (await airlock.sandboxes.create({ name: 'ended' })).terminate()
      await kept.run(['echo', 'before'])
      const { head } = await admin.audit.head()
      // The sweep has kept a head in the store by then, so that a chain that lost its end would show.
      await expect
        .poll(async () => (await admin.audit.chains())[0]?.head.seq ?? 0, { timeout: 100_000 })
        .toBeGreaterThan(5)
      const saved = new AbortController()
      const work = (async () => {
        while (!saved.signal.aborted) await kept.run(['true'])
      })()
      await kind.save(env, server.home)
      saveFiles(server.home)
      saved.abort()
      await work
      await airlock.sandboxes.create({ name: 'after-the-backup' })
      await server.stop('SIGINT')

      const home = restoreFiles()
      const again = await startServer({ env: await kind.restore(home), home })
      try {
        const back = users(again)
        expect([again.developerKey, again.adminKey]).toEqual([server.developerKey, server.adminKey])
        const { items } = await back.airlock.sandboxes.list({ state: 'all' })
        const told = items.map(({ data }) => `${data.name} ${data.state} ${data.endReason}`)
        expect(told.sort()).toEqual(['ended stopped terminated', 'kept error guest_lost'])
        const fresh = await back.airlock.sandboxes.create({ name: 'kept' })
        expect(await fresh.run(['echo', 'again'])).toMatchObject({ stdout: 'again\n' })
        expect(fresh.data.node).toBe(kept.data.node)
        await expectWhole(back.admin, head)
      } finally {
        await again.stop('SIGINT')
      }
    })
  })

describe('a node whose machine died', requires('root', 'postgres'), () => {
  beforeAll(() => POSTGRES.start())
  afterAll(() => POSTGRES.stop())

  it('goes on elsewhere with its chain, and never beside itself', async () => {
    const env = await POSTGRES.make()
    const server = await startServer({ env })
    homes.push(server.home)
    const { airlock, admin } = users(server)
    const living = await airlock.sandboxes.create({ name: 'living' })
    saveFiles(server.home)
    const stale = restoreFiles()

    // As long as it lives, no copy of its home becomes the same node.
    await expect(startServer({ env, home: stale })).rejects.toThrow(`Another server runs as node ${living.data.node}`)
    expect(await living.run(['echo', 'unharmed'])).toMatchObject({ stdout: 'unharmed\n' })
    const { head } = await admin.audit.head()
    const kept = async () => (await admin.audit.chains())[0]?.head.seq
    await expect.poll(kept, { timeout: 100_000 }).toBeGreaterThanOrEqual(head.seq)
    await die(server)

    // A copy of the evidence that lacks its end is not continued: nothing is granted.
    const behind = await startServer({ env, home: stale })
    await expect(users(behind).airlock.sandboxes.create({})).rejects.toMatchObject({ code: 'evidence_broken' })
    await die(behind)

    // With all of it the chain goes on, and the sandbox that died with the machine has an end.
    saveFiles(server.home)
    const next = await startServer({ env, home: restoreFiles() })
    try {
      const back = users(next)
      expect((await back.airlock.sandboxes.get(living.id)).data).toMatchObject({ state: 'error' })
      await (await back.airlock.sandboxes.create({ name: 'living' })).terminate()
      await expectWhole(back.admin, head)
      expect((await back.admin.audit.head()).head.seq).toBeGreaterThan(head.seq)
      const chains = await back.admin.audit.chains()
      expect(chains.map(({ node, url }) => [node, url])).toEqual([[living.data.node, next.url]])
      await expect(startServer({ env, home: server.home })).rejects.toThrow('Another server runs as node')
    } finally {
      await next.stop('SIGINT')
    }
  })
})
