import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { RecorderClient } from '@airlock/audit'
import type { NewRecord } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { memoryDir } from '../../../../test/support/memory-dir.ts'
import { COMPILED } from '../../../../test/support/compiled.ts'

/** A uid that nothing else on the machine has. */
const UID = 1_879_048_192 + 2
const MAIN = new URL('../../../../dist/recorder/main.js', import.meta.url).pathname

/** A real recorder in a directory of its own, started as the supervisor starts it. Ends and leaves with `using`. */
export class RecorderProcess implements AsyncDisposable {
  readonly home = mkdtempSync(join(memoryDir(), 'airlock-recorder-'))
  readonly stateDir = join(this.home, 'state')
  readonly #clients: RecorderClient[] = []
  #child: ChildProcess | undefined
  stderr = ''

  constructor() {
    chmodSync(this.home, 0o755)
    for (const dir of ['state', 'public', 'run', 'spill']) mkdirSync(join(this.home, dir))
    chownSync(this.stateDir, UID, UID)
    chmodSync(this.stateDir, 0o700)
  }

  static async start(): Promise<RecorderProcess> {
    const recorder = new RecorderProcess()
    await recorder.start()
    return recorder
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get publicKey(): string {
    return readFileSync(join(this.home, 'public/audit.pub'), 'utf8')
  }

  get exited(): Promise<unknown> {
    return this.#child ? exitOf(this.#child) : Promise.resolve()
  }

  chainDir(tenant: string): string {
    return join(this.stateDir, 'chains', tenant)
  }

  /** `exec` is what runs it, if not Node itself. */
  async start(
    failpoint: string | null = null,
    exec: { readonly execPath?: string; readonly execArgv?: string[] } = {},
  ): Promise<void> {
    const isRoot = process.getuid?.() === 0
    const config = {
      stateDir: this.stateDir,
      publicDir: join(this.home, 'public'),
      sockets: (['control-plane', 'data-plane'] as const).map((name) => ({
        path: this.socket(name),
        process: name,
        uid: null,
      })),
      retention: { days: 30, maxBytes: 1024 ** 3, minAgeHours: 24 },
      drop: isRoot ? { uid: UID, gid: UID } : null,
      logLevel: 'info',
      failpoint,
    }
    const child = fork(MAIN, {
      ...exec,
      silent: true,
      env: { ...COMPILED, PATH: '', AIRLOCK_PROCESS: JSON.stringify(config) },
    })
    child.stderr?.on('data', (text: Buffer) => (this.stderr += text.toString()))
    this.#child = child
    await Promise.race([once(child, 'message'), exitOf(child).then(() => Promise.reject(new TypeError(this.stderr)))])
  }

  /** Kills it in the middle of whatever it does. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.exited
  }

  async stop(): Promise<void> {
    if (this.#child?.connected) this.#child.send({ type: 'stop', mode: 'end' })
    await this.exited
  }

  socket(name: 'control-plane' | 'data-plane'): string {
    return join(this.home, 'run', `${name}.sock`)
  }

  client(name: 'control-plane' | 'data-plane' = 'control-plane', requireMs = 60_000): RecorderClient {
    const spillDir = join(this.home, 'spill', name)
    mkdirSync(spillDir, { recursive: true })
    const log = createLog({ process: name, level: 'silent', write: () => {} })
    // A recorder takes its time to come back on a busy machine.
    const client = new RecorderClient({ socket: this.socket(name), spillDir, log, requireMs })
    this.#clients.push(client)
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close()
    await this.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

/** A record that says which one it is. */
export function aRecord(n: number, tenant = 'default'): NewRecord {
  return { tenant, agent: 'default', actor: 'key:abc', point: 'command.run', status: 'requested', payload: { n } }
}

export async function exportOf(client: RecorderClient, tenant = 'default'): Promise<string[]> {
  return Array.fromAsync(client.export(tenant, AbortSignal.timeout(30_000)))
}

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
