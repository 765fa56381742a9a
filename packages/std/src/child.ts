import { flushCompileCache } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'

/** Why a supervised process is asked to stop: `end` everything it runs, or `leave` it running to be found again. */
export type StopMode = 'end' | 'leave'

export type ToChild =
  | { readonly type: 'stop'; readonly mode: StopMode }
  | { readonly type: 'killed'; readonly process: string }
export type FromChild =
  | { readonly type: 'ready'; readonly facts: Readonly<Record<string, unknown>> }
  /** Something that people at the terminal should see, and what they may type. */
  | { readonly type: 'notice'; readonly notice: Notice }
  /** For tests of crashes: the supervisor kills that process and answers `killed`. */
  | { readonly type: 'kill'; readonly process: string }

/** What people are told: a sentence, what else there is to say, and arguments of our own program that answer it. */
export interface Notice {
  readonly title: string
  readonly details: readonly string[]
  readonly commands: readonly string[]
}

/**
 * The child's side of supervision, over Node's IPC channel. A child whose supervisor died stops too, leaving what it
 * runs: it must never outlive the one who watches it. Signals from the terminal are the supervisor's business.
 */
export class Supervised {
  readonly #stop: (mode: StopMode) => Promise<void>
  #stopping = false
  #onKilled: ((name: string) => void) | undefined

  constructor(stop: (mode: StopMode) => Promise<void>) {
    this.#stop = stop
    if (!process.send) throw new TypeError('not started by the supervisor')
    process.on('SIGINT', () => {})
    process.on('SIGTERM', () => {})
    process.on('disconnect', () => void this.#exit('leave'))
    process.on('message', (message: ToChild) => {
      if (message.type === 'stop') void this.#exit(message.mode)
      else this.#onKilled?.(message.process)
    })
  }

  ready(facts: Readonly<Record<string, unknown>> = {}): void {
    // For the next life, however this one ends.
    flushCompileCache()
    this.#send({ type: 'ready', facts })
  }

  notice(notice: Notice): void {
    this.#send({ type: 'notice', notice })
  }

  /** Resolves once the supervisor has killed that process. */
  async kill(name: string): Promise<void> {
    const killed = new Promise<void>((resolve) => {
      this.#onKilled = (who) => who === name && resolve()
    })
    this.#send({ type: 'kill', process: name })
    await killed
  }

  #send(message: FromChild): void {
    process.send?.(message)
  }

  /** Bounded: a stop that hangs is cut off, for a restart finds what was left. */
  async #exit(mode: StopMode): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    await Promise.race([this.#stop(mode), delay(STOP_LIMIT_MS)]).catch(() => undefined)
    process.exit(0)
  }
}

const STOP_LIMIT_MS = 30_000

/**
 * Runs `work` as that user and becomes root again: for files in a directory that the user can change, where root would
 * follow a link that was planted there. Preconditions: nothing else runs meanwhile, for all threads change.
 */
export async function actAs<T>(
  user: { readonly uid: number; readonly gid: number } | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!user) return work()
  process.setegid?.(user.gid)
  process.seteuid?.(user.uid)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
}

/**
 * Gives up root for good, in the order that works. Preconditions: every import is done and every file is open, for
 * afterwards neither the code nor the state directory may be readable.
 */
export function dropPrivileges(to: { readonly uid: number; readonly gid: number } | undefined): void {
  if (!to) return
  // Node would write at the exit, when it may no longer.
  flushCompileCache()
  process.setgroups?.([])
  process.setgid?.(to.gid)
  process.setuid?.(to.uid)
}
