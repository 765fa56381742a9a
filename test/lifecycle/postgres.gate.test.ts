import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestPostgres } from '../support/postgres.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { usersOf, verifyChain } from '../support/users.ts'

describe('a server on PostgreSQL', requires('root', 'postgres'), () => {
  let postgres: TestPostgres
  beforeAll(async () => (postgres = await TestPostgres.start()))
  afterAll(() => postgres?.stop())

  it('walks as on SQLite, and only its control plane knows the password', async () => {
    const url = await postgres.createDatabase()
    const server = await startServer({ env: { DATABASE_URL: url } })
    try {
      const { airlock, admin } = usersOf(server)
      const sandbox = await airlock.sandboxes.create({ name: 'walk', labels: { team: 'red' } })
      expect(await sandbox.run({ shell: 'echo out; echo kept > kept; exit 7' })).toMatchObject({
        exitCode: 7,
        stdout: 'out\n',
      })
      expect(await sandbox.files.readText('/workspace/kept')).toBe('kept\n')
      expect(await postgres.ask(url, 'select state, exit_code from commands')).toEqual(['exited|7'])
      await sandbox.terminate()
      expect(sandbox.data).toMatchObject({ state: 'stopped', endReason: 'terminated' })
      expect(await verifyChain(admin)).toBeGreaterThan(8)
      expect(tellsPassword(server)).toEqual(['control-plane', 'supervisor'])
      expect(server.logs()).not.toContain('secret-of-postgres')
      expect(filesWithPassword(server.home)).toEqual([])
    } finally {
      await server.stop('SIGINT')
    }
  })
})

/** Which processes of a server have the password in their environment; none may have it on its command line. */
function tellsPassword(server: TestServer): readonly string[] {
  const names: string[] = []
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const [environ, cmdline] = [readProc(pid, 'environ'), readProc(pid, 'cmdline')]
    if (cmdline.includes('secret-of-postgres')) names.push(`command line of ${pid}`)
    if (!environ.includes(server.home) || !environ.includes('secret-of-postgres')) continue
    names.push(
      Number(pid) === server.pid ? 'supervisor' : (/\/dist\/([a-z-]+)\/main\.js/.exec(cmdline)?.[1] ?? cmdline),
    )
  }
  return names.sort()
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It is gone.
    return ''
  }
}

function filesWithPassword(home: string): readonly string[] {
  const places = ['control-plane', 'recorder', 'logs', 'public', 'run/spill']
  return places
    .flatMap((place) => readdirSync(join(home, place), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes('secret-of-postgres'))
}
