import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { deadline, waitFor } from '@airlock/std'
import { testRun } from '../support/test-group.ts'

/** Debian's own programs: another client may be ahead in the path of this machine. */
const DOCKER = '/usr/bin/docker'
const COMPOSE = '/usr/bin/docker-compose'
const READY_MS = 60_000
const STOP_MS = 60_000
const OUTPUT_BYTES = 16 * 1024 * 1024

export interface Ended {
  readonly exitCode: number
  /** Both streams, one after the other. */
  readonly output: string
  readonly stdout: string
}

export interface CallOptions {
  readonly timeoutMs?: number
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/**
 * A Docker daemon of the test's own: all that it keeps is below one directory, its groups are below a parent of their own,
 * and it changes neither the firewall nor the routes of the machine.
 */
export class DockerDaemon {
  readonly #dir: string
  readonly #process: ChildProcess

  /** Preconditions: an empty directory, for this daemon alone. */
  static async start(dir: string): Promise<DockerDaemon> {
    mkdirSync(join(dir, 'data'))
    const log = openSync(join(dir, 'dockerd.log'), 'a')
    // It ends with us, however we end.
    const child = spawn('setpriv', ['--pdeathsig', 'TERM', 'dockerd', ...daemonArgs(dir)], {
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    const daemon = new DockerDaemon(dir, child)
    const answers = async () =>
      child.exitCode !== null || (await daemon.docker(['info'])).exitCode === 0 ? true : undefined
    await waitFor(answers, { signal: deadline(READY_MS), everyMs: 200 })
    if (child.exitCode !== null) throw new Error(`dockerd ended:\n${daemon.log()}`)
    return daemon
  }

  private constructor(dir: string, child: ChildProcess) {
    this.#dir = dir
    this.#process = child
  }

  async docker(args: readonly string[], options: CallOptions = {}): Promise<Ended> {
    return await this.#call(DOCKER, args, options)
  }

  /** Like `docker`, but what fails is a failure of the test. Answers what was printed. */
  async mustDocker(args: readonly string[], options: CallOptions = {}): Promise<string> {
    return mustEnd(await this.docker(args, options), args)
  }

  async mustCompose(args: readonly string[], options: CallOptions = {}): Promise<string> {
    return mustEnd(await this.#call(COMPOSE, args, options), args)
  }

  log(): string {
    return readFileSync(join(this.#dir, 'dockerd.log'), 'utf8').slice(-8000)
  }

  /** Groups of containers that are still there, in whatever hierarchy. */
  groups(): readonly string[] {
    return groupParents(this.#dir).flatMap((parent) => childrenOf(parent).map((name) => join(parent, name)))
  }

  /** Ends the daemon and removes what it kept. Preconditions: no container runs. */
  async stop(): Promise<void> {
    const child = this.#process
    child.kill('SIGTERM')
    await waitFor(() => child.exitCode ?? child.signalCode ?? undefined, { signal: deadline(STOP_MS), everyMs: 50 })
    for (const mounted of mountsBelow(this.#dir)) await run('umount', ['--lazy', mounted], {})
    for (const parent of groupParents(this.#dir)) rmdirSync(parent)
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #call(file: string, args: readonly string[], options: CallOptions): Promise<Ended> {
    // The builder that needs no plug-in, and no settings of whoever runs the test.
    const env = { DOCKER_HOST: `unix://${this.#dir}/docker.sock`, DOCKER_BUILDKIT: '0', DOCKER_CONFIG: this.#dir }
    return await run(file, args, { ...options, env: { ...env, ...options.env } })
  }
}

function daemonArgs(dir: string): readonly string[] {
  const places = [
    '--data-root',
    join(dir, 'data'),
    '--exec-root',
    join(dir, 'exec'),
    '--pidfile',
    join(dir, 'dockerd.pid'),
  ]
  const network = ['--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false']
  const addresses = ['--default-address-pool', 'base=10.213.0.0/16,size=24']
  const groups = ['--exec-opt', 'native.cgroupdriver=cgroupfs', '--cgroup-parent', `/${groupParent(dir)}`]
  return [...places, ...network, ...addresses, ...groups, '--host', `unix://${dir}/docker.sock`, '--log-level', 'warn']
}

async function run(file: string, args: readonly string[], options: CallOptions): Promise<Ended> {
  const { timeoutMs = 120_000, cwd, env = {} } = options
  const settings = {
    timeout: timeoutMs,
    maxBuffer: OUTPUT_BYTES,
    env: { ...process.env, ...env },
    ...(cwd ? { cwd } : {}),
  }
  return await new Promise((resolve) =>
    execFile(file, args, settings, (error, stdout, stderr) => {
      const exitCode = error ? (typeof error.code === 'number' ? error.code : -1) : 0
      const cutOff = error && typeof error.code !== 'number' ? `${error.message}\n` : ''
      resolve({ exitCode, stdout, output: `${stdout}${stderr}${cutOff}` })
    }),
  )
}

function mustEnd(ended: Ended, args: readonly string[]): string {
  if (ended.exitCode !== 0) throw new Error(`docker ${args.join(' ')} ended with ${ended.exitCode}:\n${ended.output}`)
  return ended.stdout.trim()
}

function groupParent(dir: string): string {
  return `airlock-test-${testRun()}-${basename(dir)}`
}

function groupParents(dir: string): readonly string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  const points = mounts.filter((line) => / - cgroup2? /.test(line)).map((line) => line.split(' ')[4] ?? '')
  return points.map((point) => join(point, groupParent(dir))).filter((path) => childrenOf(path, 'files').length > 0)
}

function childrenOf(path: string, what: 'directories' | 'files' = 'directories'): readonly string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory() === (what === 'directories')).map(({ name }) => name)
  } catch {
    // Not in this hierarchy, or gone.
    return []
  }
}

/** Deepest first. */
function mountsBelow(dir: string): readonly string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  const points = mounts.map((line) => line.split(' ')[4] ?? '')
  return points.filter((point) => point.startsWith(`${dir}/`)).toReversed()
}
