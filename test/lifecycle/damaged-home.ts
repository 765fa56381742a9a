import { Airlock, AirlockError } from '@airlock/sdk'
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { startServer, type TestServer } from '../support/server.ts'

export const DAMAGES = ['emptied', 'cut in half', 'filled with NULs'] as const
export type Damage = (typeof DAMAGES)[number]

export const TENANTS = ['default', 'acme'] as const
export type Tenant = (typeof TENANTS)[number]

/** Of a larger file only the beginning is filled with NULs, and nothing is put back. */
const MAX_BYTES = 4 * 1024 * 1024
/** What the command of each sandbox says before anything is damaged, and what is said over the cap of another. */
const [SAID, OVER] = ['seq 10000', 'seq 20000']
const [SAID_BYTES, OVER_BYTES] = [48_894, 108_894]
const ASK_MS = 100_000

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
  const kept = size <= MAX_BYTES ? readFileSync(path) : undefined
  // A file with a second name, such as Node, is not ours alone: only this name of it is damaged.
  if (nlink > 1) {
    const bytes = readFileSync(path)
    rmSync(path)
    writeFileSync(path, bytes, { mode })
  }
  if (how === 'filled with NULs') writeFileSync(path, Buffer.alloc(Math.min(size, MAX_BYTES)), { flag: 'r+' })
  else truncateSync(path, how === 'emptied' ? 0 : Math.floor(size / 2))
  return () => {
    if (kept) writeFileSync(path, kept)
  }
}

/** What a tenant has: ids of its sandbox, a session, a command that runs, and one that said more than its cap. */
export interface Life {
  readonly sandbox: string
  readonly session: string
  readonly command: string
  readonly over: string
}

/** How that is found again. A code of an error where something is not as it was. */
export interface Found {
  readonly sandbox: string
  readonly files: string
  readonly session: string
  readonly command: string
  readonly output: string
  readonly fullOutput: string
  readonly create: string
}

export const UNHARMED: Found = {
  sandbox: 'active',
  files: 'kept',
  session: 'kept',
  command: 'running',
  output: 'whole',
  fullOutput: 'whole',
  create: 'works',
}

/** A real server with two tenants that is stopped, damaged and started again. */
export class DamagedHome implements AsyncDisposable {
  readonly home: string
  server: TestServer
  readonly lives = new Map<Tenant, Life>()
  readonly #acme: string

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

  /** Gives every tenant a life that has none. */
  async fill(): Promise<void> {
    for (const tenant of TENANTS) if (!this.lives.has(tenant)) this.lives.set(tenant, await beginLife(this.as(tenant)))
  }

  /** Ends what is not as it was. */
  async drop(tenant: Tenant): Promise<void> {
    const life = this.lives.get(tenant)
    this.lives.delete(tenant)
    if (life) await (await this.as(tenant).sandboxes.get(life.sandbox)).terminate()
  }

  /** Leaves the sandboxes. */
  async stop(): Promise<void> {
    await this.server.stop('SIGTERM')
  }

  /** Answers whether it starts. What Node compiled is in its home, as elsewhere. */
  async start(): Promise<boolean> {
    const env = { NODE_COMPILE_CACHE: join(this.home, 'compiled') }
    this.server = await startServer({ home: this.home, env, tolerateDeath: true })
    return this.server.isRunning()
  }

  async warnings(): Promise<readonly string[]> {
    const ready = (await (await fetch(`${this.server.url}/readyz`)).json()) as { status?: string; warnings?: string[] }
    return ready.status === 'ready' ? (ready.warnings ?? []) : ['not ready']
  }

  async find(tenant: Tenant): Promise<Found> {
    const life = this.lives.get(tenant)
    if (!life) throw new TypeError(`${tenant} has no life`)
    const airlock = this.as(tenant)
    const sandbox = await airlock.sandboxes.get(life.sandbox)
    const signal = AbortSignal.timeout(ASK_MS)
    const { state, error } = sandbox.data
    return {
      sandbox: error?.code ?? state,
      files: await tried(async () => (await sandbox.run(['cat', '/workspace/kept'], { signal })).stdout.trim()),
      session: await tried(async () =>
        (await (await airlock.sessions.get(life.session)).run('echo $kept', { signal })).stdout.trim(),
      ),
      command: await tried(async () => (await sandbox.command(life.command).get()).state),
      output: await tried(async () => {
        const { stdout } = await sandbox.command(life.command).output()
        return stdout.length >= SAID_BYTES ? 'whole' : 'cut'
      }),
      fullOutput: await tried(async () => {
        const bytes = Buffer.concat(await Array.fromAsync(sandbox.command(life.over).fullOutput()))
        return bytes.length === OVER_BYTES && bytes.at(0) !== 0 ? 'whole' : 'damaged'
      }),
      create: await tried(async () => {
        await using fresh = await airlock.sandboxes.create({})
        const { stdout } = await fresh.run({ shell: 'id -un; python3 -c "print(6*7)"' }, { signal })
        return stdout === 'user\n42\n' ? 'works' : stdout
      }),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.server.isRunning()) await this.start()
    await this.server.stop('SIGINT')
    rmSync(this.home, { recursive: true, force: true })
  }
}

async function beginLife(airlock: Airlock): Promise<Life> {
  const sandbox = await airlock.sandboxes.create({})
  await sandbox.run({ shell: 'echo kept > /workspace/kept' })
  const { id: over } = await sandbox.run({ shell: OVER }, { maxOutputBytes: 1000 })
  const command = await sandbox.start({ shell: `${SAID}; touch said; while sleep 1; do echo on; done` })
  const session = await airlock.sessions.create({ runtime: 'bash', sandbox })
  await session.run('kept=kept; while [ ! -e /workspace/said ]; do sleep 0.05; done')
  return { sandbox: sandbox.id, session: session.id, command: command.id, over }
}

/** The code of its error where it fails. */
async function tried(work: () => Promise<string>): Promise<string> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AirlockError) return error.code
    throw error
  }
}
