import { Airlock, AirlockError, type RunningCommand, type Sandbox, type Session } from '@airlock/sdk'
import { readdirSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { startServer, type TestServer } from '../support/server.ts'

export const DAMAGES = ['emptied', 'cut in half', 'filled with NULs'] as const
export type Damage = (typeof DAMAGES)[number]

export const TENANTS = ['default', 'acme'] as const
type Tenant = (typeof TENANTS)[number]

/** Larger files lose their first bytes only. */
const MAX_NULS = 4 * 1024 * 1024

/** Every regular file below a directory, by its path from there. */
export function filesBelow(dir: string, from = dir): readonly string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) return filesBelow(path, from)
    return entry.isFile() ? [relative(from, path)] : []
  })
}

/** Damages one file; answers how to undo that. */
export function damageFile(path: string, how: Damage): () => void {
  const { size, mode, nlink } = statSync(path)
  const kept = size <= MAX_NULS || nlink > 1 ? readFileSync(path) : undefined
  if (nlink > 1) {
    // A file with several names is not ours alone: only this name of it is damaged.
    renameSync(path, `${path}.kept`)
    writeFileSync(path, kept ?? '', { mode })
  }
  if (how === 'filled with NULs') writeFileSync(path, Buffer.alloc(Math.min(size, MAX_NULS)), { flag: 'r+' })
  else truncateSync(path, how === 'emptied' ? 0 : Math.floor(size / 2))
  return () => {
    if (nlink > 1) renameSync(`${path}.kept`, path)
    else if (kept) writeFileSync(path, kept)
  }
}

interface Life {
  readonly sandbox: string
  readonly session: string
  readonly command: string
  readonly capped: string
}

/** What a server does after one of its files was damaged while it was stopped. */
export interface Seen {
  readonly starts: boolean
  readonly said: readonly string[]
  readonly ready?: unknown
  readonly tenants?: Record<Tenant, Record<string, unknown>>
}

/** A server with two tenants, each with a living sandbox, that is stopped, damaged and started again. */
export class DamagedHome {
  readonly home: string
  readonly #acme: string
  readonly lives = new Map<Tenant, Life>()
  server: TestServer

  private constructor(server: TestServer, acme: string) {
    this.server = server
    this.home = server.home
    this.#acme = acme
  }

  static async make(): Promise<DamagedHome> {
    const server = await startServer()
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    await admin.tenants.create('acme')
    const { secret } = await admin.keys.create({ name: 'admin', role: 'admin', tenant: 'acme' })
    return new DamagedHome(server, secret)
  }

  as(tenant: Tenant): Airlock {
    return new Airlock({ url: this.server.url, apiKey: tenant === 'default' ? this.server.adminKey : this.#acme })
  }

  /** Each tenant has a living sandbox with a session, a command that runs, and outputs of several sizes. */
  async fill(): Promise<void> {
    for (const tenant of TENANTS) {
      const airlock = this.as(tenant)
      const before = this.lives.get(tenant)
      if (before && (await stateOf(airlock, before.sandbox)) === 'active') continue
      const sandbox = await airlock.sandboxes.create({})
      await sandbox.run({ shell: 'echo kept > /workspace/kept' })
      const { id: capped } = await sandbox.run({ shell: 'seq 20000' }, { maxOutputBytes: 1000 })
      const command = await sandbox.start({ shell: 'seq 10000; while sleep 1; do echo on; done' })
      const session = await airlock.sessions.create({ runtime: 'bash', sandbox })
      await session.run('x=here')
      this.lives.set(tenant, { sandbox: sandbox.id, session: session.id, command: command.id, capped })
    }
  }

  async start(): Promise<void> {
    this.server = await startServer({ home: this.home, tolerateDeath: true })
  }

  async see(): Promise<Seen> {
    const lines = this.server.logs().split('\n')
    const said = lines.filter((line) => /"level":"(warn|error)"|did not start/u.test(line) || !line.startsWith('{'))
    if (!this.server.isRunning()) return { starts: false, said }
    const ready = await (await fetch(`${this.server.url}/readyz`)).json()
    const tenants = { default: await this.#seeTenant('default'), acme: await this.#seeTenant('acme') }
    return { starts: true, said, ready, tenants }
  }

  async #seeTenant(tenant: Tenant): Promise<Record<string, unknown>> {
    const airlock = this.as(tenant)
    const life = this.lives.get(tenant)
    const sandbox = life && (await airlock.sandboxes.get(life.sandbox))
    const tried = async (work: () => Promise<unknown>) =>
      work().catch((error: unknown) => (error instanceof AirlockError ? error.code : String(error)))
    return {
      state: [sandbox?.data.state, sandbox?.data.endReason, sandbox?.data.error],
      run: await tried(async () => (await sandbox?.run(['cat', '/workspace/kept'], { signal: AbortSignal.timeout(20_000) }))?.stdout),
      step: await tried(async () => (await (await airlock.sessions.get(life?.session ?? '')).run('echo $x', { signal: AbortSignal.timeout(20_000) })).stdout),
      command: await tried(async () => (await sandbox?.command(life?.command ?? '').get())?.state),
      output: await tried(async () => ((await sandbox?.command(life?.command ?? '').output())?.stdout ?? '').length),
      full: await tried(async () => Buffer.concat(await Array.fromAsync(sandbox?.command(life?.capped ?? '').fullOutput() ?? [])).length),
      create: await tried(async () => {
        await using fresh = await airlock.sandboxes.create({})
        return (await fresh.run(['python3', '-c', 'import os;print(os.getlogin if 0 else 42)'])).stdout
      }),
      stats: await tried(async () => (await airlock.audit.stats()).verification.state),
      key: await tried(async () => (await airlock.whoami()).role),
    }
  }
}

async function stateOf(airlock: Airlock, id: string): Promise<string> {
  return (await airlock.sandboxes.get(id)).data.state
}
