import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import type { Victim } from './plan.ts'

const CLI = fileURLToPath(new URL('../../packages/cli/bin/airlock.js', import.meta.url))
const READY_MS = 180_000
const STOP_MS = 100_000
const ASK_MS = 2_000

/** What the API says of the others is what it saw last: that they are back is seen at their sockets. */
const SOCKETS = ['data-plane.sock', 'doors.sock', 'recorder-control-plane.sock', 'recorder-data-plane.sock']

export const PROCESSES = ['supervisor', 'recorder', 'data-plane', 'doors', 'control-plane'] as const
export type ProcessName = (typeof PROCESSES)[number]

/** One agent has more than one has by default, and the node promises more than it has. */
const SETTINGS = {
  AIRLOCK_AGENT_SANDBOXES: '100',
  AIRLOCK_AGENT_MEMORY_MB: '100000',
  AIRLOCK_AGENT_DISK_MB: '1000000',
  AIRLOCK_AGENT_CPUS: '100',
  AIRLOCK_OVERSUBSCRIBE_DISK: '20',
  AIRLOCK_CAPACITY: '200',
  AIRLOCK_MONITOR_EVERY_S: '1',
}

/** One home over many lives of a server. It keeps its address, so that whoever waits for an answer may go on waiting. */
export class SoakServer {
  readonly home: string
  #port = '0'
  #child: ChildProcess | undefined

  constructor(prefix: string) {
    this.home = mkdtempSync(prefix)
    chmodSync(this.home, 0o711)
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get admin(): Airlock {
    return new Airlock({ url: this.url, apiKey: readFileSync(`${this.home}/admin.key`, 'utf8').trim() })
  }

  async start(): Promise<void> {
    const errors = openSync(`${this.home}/stderr`, 'a')
    const env = { ...SETTINGS, ...this.environment, AIRLOCK_PORT: this.#port }
    const child = spawn(process.execPath, [CLI, 'serve', '--json'], { env, stdio: ['ignore', 'pipe', errors] })
    closeSync(errors)
    this.#child = child
    const lines = createInterface({ input: child.stdout ?? Readable.from([]) })
    const line = once(lines, 'line', { signal: AbortSignal.timeout(READY_MS) })
    const first = await Promise.race([line, once(child, 'exit').then(() => undefined)])
    if (!first) throw new TypeError(`The server did not start:\n${readFileSync(`${this.home}/stderr`, 'utf8')}`)
    this.#port = portOf(String(first[0]))
    await this.ready()
  }

  /** Waits until each process is there and listens, and the API says that it can create sandboxes. */
  async ready(): Promise<void> {
    const isWhole = async () => {
      if (this.pids().size < PROCESSES.length) return undefined
      const listens = await Promise.all(SOCKETS.map(async (name) => accepts(`${this.home}/run/${name}`)))
      return listens.every(Boolean) && (await this.#answers()) ? true : undefined
    }
    await waitFor(isWhole, { signal: deadline(READY_MS), everyMs: 50 })
  }

  /** What runs now. A process that is on its way back has none. */
  pids(): ReadonlyMap<ProcessName, number> {
    const supervisor = this.#child
    if (supervisor?.pid === undefined || !isAlive(supervisor)) return new Map()
    const children = read(`/proc/${supervisor.pid}/task/${supervisor.pid}/children`).trim().split(' ').map(Number)
    const named = children.flatMap((pid) => {
      const name = PROCESSES.find((one) => read(`/proc/${pid}/cmdline`).includes(`/dist/${one}/main.js`))
      return name === undefined ? [] : [[name, pid] as const]
    })
    return new Map<ProcessName, number>([['supervisor', supervisor.pid], ...named])
  }

  /** SIGKILL. When the supervisor was among them, the server is started again. */
  async kill(victim: Victim): Promise<void> {
    const pids = this.pids()
    const supervisor = this.#child
    const exited = supervisor && isAlive(supervisor) ? once(supervisor, 'exit') : undefined
    const victims = [...pids].filter(([name]) => victim === 'all' || name === victim).map(([, pid]) => pid)
    for (const pid of victims) signal(pid)
    if (victim === 'all' || victim === 'supervisor') {
      await exited
      return this.start()
    }
    // A process that is killed listens until it has ended.
    const isGone = () => ([...this.pids().values()].some((pid) => victims.includes(pid)) ? undefined : true)
    await waitFor(isGone, { signal: deadline(READY_MS), everyMs: 10 })
    await this.ready()
  }

  /** SIGTERM leaves sandboxes alone; SIGINT ends them. Answers the exit code, or what ended it. */
  async stop(how: 'SIGTERM' | 'SIGINT'): Promise<number | string | null> {
    const child = this.#child
    if (!child || !isAlive(child)) return null
    const exited = once(child, 'exit')
    child.kill(how)
    const bound = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    const [code, by] = (await exited) as [number | null, string | null]
    clearTimeout(bound)
    return by ?? code
  }

  /** Nothing of the developer's own environment reaches the server but where programs are. */
  get environment(): Record<string, string> {
    return { PATH: process.env['PATH'] ?? '', HOME: '/root', AIRLOCK_HOME: this.home }
  }

  async #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const asked = get(`${this.url}/readyz`, { agent: false, timeout: ASK_MS }, (response) => {
        response.resume()
        resolve(response.statusCode === 200)
      })
      asked.on('timeout', () => asked.destroy())
      asked.on('error', () => resolve(false))
    })
  }
}

/** A socket that a dead process left behind refuses. */
async function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

function portOf(line: string): string {
  const { url } = JSON.parse(line) as { readonly url: string }
  return new URL(url).port
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended since it was listed.
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It ended since it was listed.
    return ''
  }
}
