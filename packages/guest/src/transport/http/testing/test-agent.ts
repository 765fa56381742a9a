import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { AgentBoot } from '@airlock/contract/guest'

const GUEST_PROGRAM = new URL('../../../main.ts', import.meta.url).pathname
const BUILD = new URL('../../../../build.ts', import.meta.url).pathname

/** Uids of nobody else: all that such a one has is ended with the last session of its agent. */
const UIDS = { first: 61_000, count: 4000 }

export interface AgentReply {
  readonly status: number
  readonly body: unknown
}

/** A real agent as a process of this host, without walls. */
export class TestAgent {
  readonly work: string
  /** Who user code is. */
  readonly uid: number
  readonly #root: string
  readonly #process: ChildProcess
  #said = ''
  #port = 0

  private constructor(root: string, uid: number, argv: readonly string[]) {
    this.#root = root
    this.uid = uid
    this.work = join(root, 'work')
    this.#process = spawn(argv[0] ?? '', argv.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#said += text))
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#said += text))
  }

  /** Started by `launcher`, if any: a program that starts the one that is named by its arguments. */
  static async start(change: Partial<AgentBoot> = {}, launcher: readonly string[] = []): Promise<TestAgent> {
    const uid = UIDS.first + randomInt(UIDS.count)
    const root = await mkdtemp(join(tmpdir(), 'airlock-agent-'))
    await chmod(root, 0o711)
    await mkdir(join(root, 'work'))
    await chown(join(root, 'work'), uid, uid)
    execFileSync(process.execPath, [BUILD, join(root, 'guest.cjs')], { stdio: ['ignore', 'ignore', 'inherit'] })
    const boot: AgentBoot = {
      listen: { host: '127.0.0.1', port: 0 },
      user: { uid, gid: uid },
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', LANG: 'C.UTF-8' },
      kernels: join(root, 'kernels'),
      steps: join(root, 'steps'),
      ...change,
    }
    const agent = new TestAgent(root, uid, [...launcher, inject('nodeForAll'), GUEST_PROGRAM, JSON.stringify(boot)])
    await agent.#listening()
    return agent
  }

  /** What it wrote, on stdout and stderr. */
  get said(): string {
    return this.#said
  }

  get exitCode(): number | null {
    return this.#process.exitCode
  }

  async call(method: string, path: string, options: { token?: string; body?: unknown } = {}): Promise<AgentReply> {
    const { token, body } = options
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(token === undefined ? {} : { 'x-session-token': token }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }

  /** Asks it to end, and waits until it did. */
  async stop(): Promise<void> {
    if (this.#process.exitCode === null) {
      this.#process.kill('SIGTERM')
      await once(this.#process, 'exit')
    }
    await rm(this.#root, { recursive: true, force: true })
  }

  async #listening(): Promise<void> {
    while (!this.#said.includes('\n')) {
      if (this.#process.exitCode !== null) return
      await Promise.race([once(this.#process.stdout ?? this.#process, 'data'), once(this.#process, 'exit')])
    }
    this.#port = Number(/"port":(\d+)/.exec(this.#said)?.[1] ?? 0)
  }
}
