import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { GuestBoot, GuestGroups, GuestRuntime } from '@airlock/contract/guest'
import { testRun } from '../../../../../test/support/test-group.ts'
import { TestHost, type TestSession } from './test-host.ts'

const GUEST_PROGRAM = new URL('../../main.ts', import.meta.url).pathname
const BUILD = new URL('../../../build.ts', import.meta.url).pathname
const USER = { uid: 1000, gid: 1000 }
const ENV = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', LANG: 'C.UTF-8' }

/** A real guest as a process of this host, without walls, and a host for it. */
export class TestGuest {
  readonly host: TestHost
  /** A directory that user code owns. */
  readonly work: string
  readonly #root: string
  readonly #mark: string
  readonly #process: ChildProcess

  private constructor(boot: GuestBoot, root: string, mark: string) {
    this.host = new TestHost(boot.socket)
    this.work = join(root, 'work')
    this.#root = root
    this.#mark = mark
    this.#process = spawn(inject('nodeForAll'), [GUEST_PROGRAM, JSON.stringify(boot)], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
  }

  static async start(groups?: GuestGroups): Promise<TestGuest> {
    const root = await mkdtemp(join(tmpdir(), 'airlock-sessions-'))
    const at = (name: string) => join(root, name)
    await chmod(root, 0o711)
    for (const name of ['work', 'groups', 'control']) await mkdir(at(name))
    await chown(at('work'), USER.uid, USER.gid)
    execFileSync(process.execPath, [BUILD, at('guest.cjs')], { stdio: ['ignore', 'ignore', 'inherit'] })
    const mark = `${testRun()}-${randomBytes(8).toString('hex')}`
    const plain = { join: [], commands: at('groups'), joinFile: 'tasks', kill: 'pids.max' } as const
    const boot: GuestBoot = {
      socket: at('control/guest.sock'),
      user: USER,
      env: { ...ENV, AIRLOCK_TEST_MARK: mark },
      groups: groups ?? plain,
      kernels: at('kernels'),
      steps: at('steps'),
    }
    const guest = new TestGuest(boot, root, mark)
    await guest.host.attached()
    return guest
  }

  get stepsDir(): string {
    return join(this.#root, 'steps')
  }

  async open(runtime: GuestRuntime, env: Readonly<Record<string, string>> = {}): Promise<TestSession> {
    return await this.host.openSession(runtime, { cwd: this.work, env })
  }

  async stop(): Promise<void> {
    this.#process.kill('SIGKILL')
    if (this.#process.exitCode === null && this.#process.signalCode === null) await once(this.#process, 'exit')
    this.host.close()
    for (const pid of this.#survivors()) process.kill(pid, 'SIGKILL')
    await rm(this.#root, { recursive: true, force: true })
  }

  /** Processes of user code that are still there: they carry our mark. */
  #survivors(): readonly number[] {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/u.test(name))
    return pids.filter((pid) => environOf(pid).includes(this.#mark)).map(Number)
  }
}

function environOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    // It has gone.
    return ''
  }
}
