import { Airlock } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestPostgres } from '../support/postgres.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { usersOf, verifyChain } from '../support/users.ts'

describe('servers on PostgreSQL', requires('root', 'postgres'), () => {
  let postgres: TestPostgres
  beforeAll(async () => (postgres = await TestPostgres.start()))
  afterAll(() => postgres?.stop())

  const start = (url: string, home?: string) =>
    startServer({ env: { DATABASE_URL: url }, ...(home === undefined ? {} : { home }) })

  it('go on when PostgreSQL goes away and comes back', async () => {
    const server = await start(await postgres.createDatabase())
    try {
      const { airlock, admin } = usersOf(server)
      const sandbox = await airlock.sandboxes.create({})
      await postgres.kill9()
      await expect(airlock.sandboxes.create({})).rejects.toMatchObject({ code: 'store_unavailable' })
      await postgres.restart()
      await expect
        .poll(async () => fetch(`${server.url}/readyz`).then((one) => one.status), { timeout: 100_000 })
        .toBe(200)
      expect(await sandbox.run(['echo', 'still'])).toMatchObject({ stdout: 'still\n' })
      await sandbox.terminate()
      await verifyChain(admin)
    } finally {
      await server.stop('SIGINT')
    }
  })

  it('kill for a caller with a key while PostgreSQL is away, and hold it over a crash', async () => {
    const url = await postgres.createDatabase()
    let server = await start(url)
    try {
      const { airlock, admin } = usersOf(server)
      const sandbox = await airlock.sandboxes.create({})
      await postgres.kill9()
      const kill = { scope: 'agent', target: 'default' } as const
      const gone = { unverified: [], sandboxes: [{ id: sandbox.id, verified: true }] }
      expect(await admin.killswitch.on(kill)).toMatchObject({ persisted: false, ...gone })
      expect(server.processesOf(sandbox.id)).toEqual([])
      await expect(airlock.killswitch.on(kill)).rejects.toMatchObject({ code: 'store_unavailable' })
      await expect(admin.keys.list()).rejects.toMatchObject({ code: 'store_unavailable' })
      await server.kill9()
      await postgres.restart()
      server = await start(url, server.home)
      const back = usersOf(server)
      await expect(back.airlock.sandboxes.create({})).rejects.toMatchObject({ code: 'killed' })
      expect(await back.admin.killswitch.list()).toMatchObject([{ scope: 'agent', persisted: true }])
      await back.admin.killswitch.lift(kill)
      await (await back.airlock.sandboxes.create({})).terminate()
    } finally {
      await server.stop('SIGINT')
    }
  })

  it('that share one do not harm each other: started, used, killed and started again', async () => {
    const url = await postgres.createDatabase()
    const first = await start(url)
    const second = await start(url)
    let again: TestServer | undefined
    try {
      const [one, two] = [usersOf(first), usersOf(second)]
      const [mine, yours] = await Promise.all([
        one.airlock.sandboxes.create({ name: 'mine' }),
        two.airlock.sandboxes.create({ name: 'yours' }),
      ])
      expect(mine.data.node).not.toBe(yours.data.node)

      // Each server knows the keys and the rows of the other, and says where to go for the rest.
      const visitor = new Airlock({ url: second.url, apiKey: first.developerKey })
      const seen = await visitor.sandboxes.get(mine.id)
      expect(seen.data).toMatchObject({ name: 'mine', state: 'active', node: mine.data.node })
      await expect(visitor.sandboxes.create({ name: 'mine' })).rejects.toMatchObject({ code: 'name_taken' })
      for (const effect of [
        async () => seen.run(['true']),
        async () => seen.files.readText('/workspace/x'),
        async () => seen.terminate(),
        async () => visitor.sandboxes.getOrCreate('mine', {}),
      ])
        await expect(effect()).rejects.toMatchObject({ code: 'wrong_node', hint: `Ask ${first.url}.` })

      // One dies with everything but its sandboxes. The other goes on granting, and ends nothing of it.
      await first.kill9()
      expect(await yours.run(['echo', 'on'])).toMatchObject({ stdout: 'on\n' })
      await (await two.airlock.sandboxes.create({})).terminate()
      expect((await two.airlock.sandboxes.get(mine.id)).data.state).toBe('active')

      again = await start(url, first.home)
      const back = usersOf(again)
      const found = await back.airlock.sandboxes.get(mine.id)
      expect(found.data).toMatchObject({ state: 'active', node: mine.data.node })
      expect(await found.run(['echo', 'back'])).toMatchObject({ stdout: 'back\n' })

      // Two chains, each whole, each by its own key.
      expect([await verifyChain(back.admin), await verifyChain(two.admin)].every((count) => count > 4)).toBe(true)
      await expect
        .poll(async () => (await two.admin.audit.chains()).map((chain) => [chain.node, chain.url]), {
          timeout: 100_000,
        })
        .toEqual(
          [
            [mine.data.node, again.url],
            [yours.data.node, second.url],
          ].sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
        )
      const [a, b] = await two.admin.audit.chains()
      expect(a?.publicKey).not.toBe(b?.publicKey)

      // Ctrl-C at one ends its own alone.
      await again.stop('SIGINT')
      expect((await two.airlock.sandboxes.get(mine.id)).data).toMatchObject({ state: 'stopped', endReason: 'shutdown' })
      expect((await two.airlock.sandboxes.get(yours.id)).data.state).toBe('active')
    } finally {
      await again?.stop('SIGINT')
      await first.stop('SIGINT')
      await second.stop('SIGINT')
    }
  })
})
