import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { deadline, waitFor } from '@airlock/std'
import { inject } from 'vitest'
import { COMPILED } from './compiled.ts'
import { processesOf, removeHome, sweep } from './leftovers.ts'

export { finalLeftovers, leftovers, removeHome } from './leftovers.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const READY_MS = 180_000
const STOP_MS = 100_000
const FAILPOINT_MS = 10_000
const LOG_CHARS = 1024 * 1024

/** Tests that are not about budgets use more at once than one agent has by default. */
const AMPLE = {
  AIRLOCK_AGENT_SANDBOXES: '100',
  AIRLOCK_AGENT_MEMORY_MB: '100000',
  AIRLOCK_AGENT_DISK_MB: '1000000',
  AIRLOCK_AGENT_CPUS: '100',
  // Files of tests run side by side, on machines with little disk.
  AIRLOCK_OVERSUBSCRIBE_DISK: '20',
  AIRLOCK_DISK_RESERVE_MB: '64',
}

export interface ServerOptions {
  /** Settings as `AIRLOCK_*`. */
  readonly env?: Readonly<Record<string, string>>
  /** `<failpoint>:<process>`. */
  readonly failpoint?: string
  /** State of a server that ran before. */
  readonly home?: string
  /** Whose code it runs: this repository, or a copy of it. */
  readonly tree?: string
  /** What a user types instead of `airlock serve --json`, and what signals go to. */
  readonly command?: readonly [string, ...string[]]
  /** Resolves also when the server dies before it is ready, as it may at a failpoint. */
  readonly tolerateDeath?: boolean
}

/** A real server, started as a user starts it. */
export interface TestServer {
  readonly url: string
  /** The keys themselves, not their files. */
  readonly developerKey: string
  readonly adminKey: string
  readonly pid: number
  readonly home: string
  /** Resolves with its exit code or the signal that ended it. */
  readonly exited: Promise<number | string | null>
  /**
   * SIGINT, the default, ends its sandboxes: anything left on the host is a failure, and a home that the server made is
   * removed. Any other signal leaves home and sandboxes for the next server. May be called again.
   */
  stop(signal?: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): Promise<number | string | null>
  /** Kills the supervisor alone, as a crash does. */
  kill9(): Promise<void>
  isRunning(): boolean
  /** Whether one of its processes was killed, waiting a moment for it. */
  diedAtFailpoint(): Promise<boolean>
  processesOf(sandbox: string): readonly number[]
  /** What it printed, and what it logged. */
  logs(): string
}

/** What a caller needs to know of one. */
export type Reachable = Pick<TestServer, 'url' | 'developerKey' | 'adminKey' | 'pid' | 'home'>

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const home = options.home ?? makeHome()
  const logged = logReader(home)
  const program = join(options.tree ?? REPOSITORY, 'packages/cli/bin/airlock.js')
  const [file, ...words] = options.command ?? [process.execPath, program, 'serve', '--json']
  const child = spawn(file, words, {
    cwd: REPOSITORY,
    env: environment(home, options),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(signal ?? code)),
  )
  const printed = collect(child)
  const logs = () => `${printed()}\n${logged()}`
  const ready = await waitUntilReady({ child, exited, logs }).catch(async (error: unknown) => {
    if (options.tolerateDeath === true && !isAlive(child)) return unreachable(home, child)
    child.kill('SIGKILL')
    if (options.home === undefined) await sweep(home)
    throw error
  })
  return {
    ...ready,
    home,
    exited,
    logs,
    stop: async (signal = 'SIGINT') => {
      const how = await end(child, signal, exited)
      if (signal === 'SIGINT') await removeHome(home, options.home === undefined ? 'remove' : 'keep')
      return how
    },
    kill9: async () => {
      child.kill('SIGKILL')
      await exited
    },
    isRunning: () => isAlive(child),
    diedAtFailpoint: async () =>
      waitFor(() => (!isAlive(child) || logged().includes('died (SIGKILL)') ? true : undefined), {
        signal: deadline(FAILPOINT_MS),
        everyMs: 20,
      }).catch(() => false),
    processesOf: (sandbox) => processesOf(home, sandbox),
  }
}

/** Short, for sockets have short paths; marked, so that the sweep after the last test finds it. */
export function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), `al-${inject('testRun') ?? ''}`))
  chmodSync(home, 0o711)
  return home
}

/** Nothing of the developer's own environment reaches the server but where programs are. */
function environment(home: string, options: ServerOptions): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: '/root',
    ...COMPILED,
    AIRLOCK_HOME: home,
    AIRLOCK_PORT: '0',
    // The code of another tree may not know these settings.
    ...(options.tree === undefined ? AMPLE : {}),
    ...(options.failpoint === undefined ? {} : { AIRLOCK_FAILPOINT: options.failpoint }),
    ...options.env,
  }
}

type Ready = Pick<TestServer, 'url' | 'developerKey' | 'adminKey' | 'pid'>

async function waitUntilReady(server: {
  child: ChildProcess
  exited: Promise<unknown>
  logs: () => string
}): Promise<Ready> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const fail = (why: string) => reject(new TypeError(`the server ${why}:\n${server.logs()}`))
  const bound = setTimeout(() => fail(`was not ready within ${READY_MS} ms`), READY_MS)
  void server.exited.then((how) => fail(`ended with ${String(how)}`))
  if (server.child.stdout) createInterface({ input: server.child.stdout }).once('line', resolve)
  try {
    return parseReady(await promise)
  } finally {
    clearTimeout(bound)
  }
}

function parseReady(line: string): Ready {
  const { url, pid, developerKey, adminKey } = JSON.parse(line) as Ready
  return { url, pid, developerKey: readKey(developerKey), adminKey: readKey(adminKey) }
}

/** A server that died while it started: calls to it fail as calls to any server that is gone. */
function unreachable(home: string, child: ChildProcess): Ready {
  const keys = { developerKey: readKey(`${home}/developer.key`), adminKey: readKey(`${home}/admin.key`) }
  return { url: 'http://127.0.0.1:9', pid: child.pid ?? 0, ...keys }
}

function readKey(path: string): string {
  return readFileSync(path, 'utf8').trim()
}

async function end(
  child: ChildProcess,
  signal: NodeJS.Signals,
  exited: Promise<number | string | null>,
): Promise<number | string | null> {
  child.kill(signal)
  const bound = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  try {
    return await exited
  } finally {
    clearTimeout(bound)
  }
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

function collect(child: ChildProcess): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(-LOG_CHARS)))
  return () => text
}

/** Reads what is logged from now on: a home that is used again has a log already. */
function logReader(home: string): () => string {
  const path = `${home}/logs/airlock.log`
  const from = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return () => {
    const there = statSync(path, { throwIfNoEntry: false }) !== undefined
    return there ? readFileSync(path).subarray(from).toString().slice(-LOG_CHARS) : ''
  }
}
