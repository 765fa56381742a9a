import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { AgentBoot, GuestBoot, GuestProcessLimits, GuestPrograms } from '@airlock/contract/guest'
import { GuestFailure } from '../failure.ts'
import { CommandGroups, type LaunchGroups } from './groups.ts'
import { programsOf } from './programs.ts'
import { ProcessSessions } from './process-sessions.ts'

export interface Launch {
  /** The name of the child group that the process enters; it must have been made. */
  readonly group: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Beyond the usual three, more that the process keeps. */
  readonly stdio: readonly [Stdio, Stdio, Stdio, ...Stdio[]]
  readonly limits?: GuestProcessLimits | undefined
}
type Stdio = number | 'ignore' | 'pipe'

const GIVE_UP = ['--clear-groups', '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--']

/**
 * Turns a new process into user code: it enters its groups, gives up every right for good, and only then gets the
 * caller's directory and environment, so that no variable reaches a program that still has rights.
 */
export class Launcher {
  readonly groups: LaunchGroups
  readonly programs: GuestPrograms
  readonly #join: readonly string[]
  readonly #drop: readonly string[]
  readonly #env: GuestBoot['env']
  readonly #threads: readonly string[]

  constructor(boot: GuestBoot | AgentBoot) {
    const endsStrays = !('socket' in boot)
    this.groups = boot.groups ? new CommandGroups(boot.groups) : new ProcessSessions(boot.user.uid, { endsStrays })
    this.#env = boot.env
    this.#threads = boot.threads ?? []
    this.programs = programsOf(boot)
    this.#join = boot.groups?.join ?? []
    const { uid, gid } = boot.user
    this.#drop = [...this.programs.setpriv, '--reuid', String(uid), '--regid', String(gid), ...GIVE_UP]
  }

  /** The environment of whatever starts now: limits may have changed since the sandbox was made. */
  get env(): GuestBoot['env'] {
    if (this.#threads.length === 0) return this.#env
    const processors = readFileSync('/proc/stat', 'utf8').match(/^cpu\d/gmu)?.length ?? 1
    return { ...this.#env, ...Object.fromEntries(this.#threads.map((name) => [name, String(processors)])) }
  }

  launch(launch: Launch): ChildProcess {
    const env = Object.entries(launch.env).map(([name, value]) => `${name}=${value}`)
    const [shell = '', ...before] = this.programs.sh
    const enter = [...this.programs.env, '-i', '-C', launch.cwd, '--', ...env, ...this.#plainName(launch.argv)]
    const child = spawn(shell, [...before, '-c', this.#script(launch), 'sh', ...this.#drop, ...enter], {
      stdio: [...launch.stdio],
      env: {},
      cwd: '/',
      detached: true,
    })
    child.on('error', () => {
      // Only a failed start can be here, and a child without pid is reported below.
    })
    if (child.pid === undefined) throw new GuestFailure('internal', 'no process could be started')
    return child
  }

  /** Fails closed: who cannot enter a group, or is not held to its limits, does not become user code. */
  #script({ group, limits = {} }: Launch): string {
    const files = [...this.#join, this.groups.joinFile(group)]
    const steps = [...files.map((file) => `echo 0 > ${quote(file)}`), ...limitSteps(limits)]
    return [...steps.map((step) => `${step} || exit 125`), 'exec "$@"'].join('\n')
  }

  /** `env` would take a program whose name contains "=" for a variable. */
  #plainName(argv: readonly string[]): readonly string[] {
    return argv[0]?.includes('=') ? [...this.programs.sh, '-c', 'exec "$0" "$@"', ...argv] : argv
  }
}

/** Nobody raises them again: user code has no right to, and neither has the guest. */
function limitSteps({ openFiles, cpuSeconds }: GuestProcessLimits): readonly string[] {
  return [
    ...(openFiles === undefined ? [] : [`ulimit -n ${openFiles}`]),
    // At the soft limit SIGXCPU, which a program may catch; at the hard one SIGKILL.
    ...(cpuSeconds === undefined ? [] : [`ulimit -S -t ${cpuSeconds}`, `ulimit -H -t ${cpuSeconds + 1}`]),
  ]
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
