import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { deadline, waitFor } from '@airlock/std'
import { inject } from 'vitest'

const run = promisify(execFile)
const DEBIAN = '/usr/lib/postgresql'
const USER = 'airlock'
const NOBODY = 65_534
const READY_MS = 30_000
const DURABILITY = ['fsync=off', 'full_page_writes=off']

/** Where Debian keeps the programs of its newest PostgreSQL, or undefined. */
export function postgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number).filter(Number.isInteger) : []
  const newest = versions.sort((a, b) => b - a)[0]
  const directory = `${DEBIAN}/${newest}/bin`
  return existsSync(join(directory, 'initdb')) ? directory : undefined
}

/**
 * A real PostgreSQL of its own, on loopback, with a password. It dies with the process that started it. What is written
 * survives a kill of PostgreSQL, but not of the machine.
 */
export class TestPostgres {
  readonly #dir: string
  #port: number
  readonly #password: string
  #server: ChildProcess | undefined
  #databases: string[] = []

  private constructor(dir: string, port: number, password: string) {
    this.#dir = dir
    this.#port = port
    this.#password = password
  }

  /** The one that all unit tests of a run share: no test may stop or kill it. Its databases go with whoever made them. */
  static async shared(): Promise<Pick<TestPostgres, 'createDatabase' | 'ask' | 'dropDatabases'>> {
    const answer = await fetch(inject('postgresDesk'))
    if (!answer.ok) throw new TypeError(await answer.text())
    const { port, password } = (await answer.json()) as TestPostgres['place']
    return new TestPostgres('', port, password)
  }

  get place(): { readonly port: number; readonly password: string } {
    return { port: this.#port, password: this.#password }
  }

  static async start(): Promise<TestPostgres> {
    const dir = mkdtempSync(join(tmpdir(), 'al-pg-'))
    if (isRoot()) chownSync(dir, NOBODY, NOBODY)
    const postgres = new TestPostgres(dir, 0, 'secret-of-postgres')
    const passwordFile = join(dir, 'password')
    writeFileSync(passwordFile, `${postgres.#password}\n`)
    chmodSync(passwordFile, 0o644)
    const initdb = ['-D', join(dir, 'data'), '-U', USER, '--pwfile', passwordFile]
    await runUnprivileged('initdb', [...initdb, '--auth=scram-sha-256', '--no-sync', '-E', 'UTF8', '--locale=C'])
    // Only now, because initdb takes seconds and another program could take the port.
    postgres.#port = await freePort()
    await postgres.restart()
    return postgres
  }

  /** An empty database of its own. Answers its URL. */
  async createDatabase(): Promise<string> {
    const name = `test_${randomBytes(6).toString('hex')}`
    this.#databases.push(name)
    await this.program('psql', ['-d', 'postgres', '-c', `create database ${name}`])
    return this.#url(name)
  }

  /** Those that this one made. */
  async dropDatabases(): Promise<void> {
    const drops = this.#databases.flatMap((name) => ['-c', `drop database if exists ${name} with (force)`])
    this.#databases = []
    if (drops.length > 0) await this.program('psql', ['-d', 'postgres', ...drops])
  }

  /** What a query answers, one line a row. */
  async ask(url: string, query: string): Promise<readonly string[]> {
    const { stdout } = await this.program('psql', ['-d', new URL(url).pathname.slice(1), '-AtX', '-c', query])
    return stdout.split('\n').filter((line) => line !== '')
  }

  /** Runs one of its client programs. */
  async program(name: 'psql' | 'pg_dump' | 'pg_restore', args: readonly string[]): Promise<{ stdout: string }> {
    const env = { PGHOST: '127.0.0.1', PGPORT: String(this.#port), PGUSER: USER, PGPASSWORD: this.#password }
    return run(programOf(name), args, { env, maxBuffer: 64 * 1024 * 1024 })
  }

  /** All of it, as a crash of its host does: who is connected would be served for a moment by what the first process left. */
  async kill9(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (!server?.pid || server.exitCode !== null || server.signalCode !== null) return
    const backends = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').split(' ').filter(Boolean)
    server.kill('SIGKILL')
    for (const pid of backends) killIfThere(Number(pid))
    await once(server, 'exit')
  }

  /** SIGINT is its fast shutdown: whoever is connected is told that an administrator did it. */
  async shutDown(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    server?.kill('SIGINT')
    if (server) await once(server, 'exit')
  }

  async restart(): Promise<void> {
    // Shared memory lies in its own directory: a server that is killed leaves nothing in /dev/shm.
    const memory = ['dynamic_shared_memory_type=mmap']
    const listen = [`port=${this.#port}`, 'listen_addresses=127.0.0.1', 'max_connections=200']
    const settings = [...listen, ...memory, ...DURABILITY]
    const args = ['-D', join(this.#dir, 'data'), '-k', this.#dir, ...settings.flatMap((one) => ['-c', one])]
    const answers = async () => this.program('psql', ['-d', 'postgres', '-c', 'select 1']).catch(() => undefined)
    // Backends of a postmaster that was killed hold its memory for a moment, and a new one does not start beside them.
    await waitFor(
      async () => {
        if (!this.#server || this.#server.exitCode !== null) this.#server = spawnUnprivileged('postgres', args)
        return answers()
      },
      { signal: deadline(READY_MS), everyMs: 100 },
    )
  }

  async stop(): Promise<void> {
    await this.kill9()
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }

  #url(database: string): string {
    return `postgres://${USER}:${this.#password}@127.0.0.1:${this.#port}/${database}`
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function programOf(name: string): string {
  return join(postgresPrograms() ?? '', name)
}

/** PostgreSQL refuses to run as root. */
function unprivileged(name: string, args: readonly string[]): readonly string[] {
  const user = isRoot() ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
  return [...user, '--pdeathsig=KILL', programOf(name), ...args]
}

async function runUnprivileged(name: string, args: readonly string[]): Promise<void> {
  await run('setpriv', unprivileged(name, args), { cwd: '/' })
}

function spawnUnprivileged(name: string, args: readonly string[]): ChildProcess {
  return spawn('setpriv', unprivileged(name, args), { cwd: '/', stdio: 'ignore' })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || !address) throw new TypeError('no port')
  return address.port
}
