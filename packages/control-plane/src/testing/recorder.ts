import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { RecorderClient } from '@airlock/audit'
import { createLog } from '@airlock/std'
import { memoryDir } from '../../../../test/support/memory-dir.ts'
import { COMPILED } from '../../../../test/support/compiled.ts'

const MAIN = new URL('../../../../dist/recorder/main.js', import.meta.url).pathname

/** A real recorder in its own process, as the supervisor starts it. */
export class TestRecorder {
  readonly #home: string
  readonly #uid: number | null
  #child: ChildProcess
  readonly #clients: RecorderClient[] = []

  private constructor(home: string, uid: number | null) {
    this.#home = home
    this.#uid = uid
    this.#child = this.#fork()
  }

  static async start(uid: number | null = null): Promise<TestRecorder> {
    const home = mkdtempSync(join(memoryDir(), 'airlock-recorder-'))
    chmodSync(home, 0o711)
    for (const dir of ['recorder', 'recorder-public']) mkdirSync(join(home, dir), { recursive: true })
    const recorder = new TestRecorder(home, uid)
    await once(recorder.#child, 'message')
    return recorder
  }

  /** Killed, and started again by itself. `meanwhile` is given the directory of all chains. */
  async restart(meanwhile: (chains: string) => void): Promise<void> {
    await this.#kill()
    meanwhile(join(this.#home, 'recorder/chains'))
    this.#child = this.#fork()
    await once(this.#child, 'message')
  }

  get socket(): string {
    return join(this.#home, 'recorder.sock')
  }

  client(spill: string): RecorderClient {
    const spillDir = join(this.#home, 'spill', spill)
    mkdirSync(spillDir, { recursive: true })
    const log = createLog({ process: 'control-plane', level: 'silent', write: () => {} })
    const client = new RecorderClient({ socket: this.socket, spillDir, log, requireMs: 60_000 })
    this.#clients.push(client)
    return client
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close()
    await this.#kill()
    rmSync(this.#home, { recursive: true, force: true })
  }

  #fork(): ChildProcess {
    const config = {
      stateDir: join(this.#home, 'recorder'),
      publicDir: join(this.#home, 'recorder-public'),
      sockets: [{ path: this.socket, process: 'control-plane', uid: this.#uid }],
      retention: { days: 30, maxBytes: 2 ** 30, minAgeHours: 24 },
      drop: null,
      logLevel: 'silent',
      failpoint: null,
    }
    return fork(MAIN, { env: { ...COMPILED, AIRLOCK_PROCESS: JSON.stringify(config) }, execArgv: [] })
  }

  async #kill(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }
}
