import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import type { FromChild, Notice, ToChild } from '@airlock/std'
import { readLines } from './lines.ts'

export interface RunOptions {
  readonly main: string
  readonly env: Record<string, string>
  readonly core?: 'none' | undefined
  readonly onLine: (line: string) => void
  readonly onKill: (victim: string) => void
  readonly onNotice: (notice: Notice) => void
}

export type Facts = Readonly<Record<string, unknown>>

const DRAIN_MS = 500
/** Of one notice. */
const MAX_LINES = 8

/**
 * A server does each thing seldom and for long: what it runs is compiled at once, which is less work until it is warm. It may
 * collect garbage when it knows that there is much: V8 does not while it is idle.
 */
const V8_FLAGS = ['--always-sparkplug', '--no-lazy-feedback-allocation', '--expose-gc']

/** A shell that sets the limit, which Node cannot do, and becomes Node. */
const WITHOUT_CORE = { execPath: '/bin/sh', execArgv: ['-c', 'ulimit -c 0 && exec "$0" "$@"', process.execPath] }

/** One life of one process: from its fork to its exit. */
export class Run {
  readonly #child: ChildProcess
  /** Resolves when it says so; never, when it dies before. */
  readonly ready: Promise<Facts>
  /** How it ended, in words. Never rejects. */
  readonly exited: Promise<Exit>
  readonly #closed: Promise<void>

  constructor(options: RunOptions) {
    // A session of its own: Ctrl-C in the terminal reaches the supervisor alone, which knows the order of stopping.
    this.#child = fork(options.main, [], {
      cwd: '/',
      env: options.env,
      ...(options.core === 'none'
        ? { ...WITHOUT_CORE, execArgv: [...WITHOUT_CORE.execArgv, ...V8_FLAGS] }
        : { execArgv: V8_FLAGS }),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) if (stream) readLines(stream, options.onLine)
    this.ready = new Promise((resolve) => {
      this.#child.on('message', (raw) => {
        const message = parseMessage(raw)
        if (message?.type === 'ready') resolve(message.facts)
        else if (message?.type === 'kill') options.onKill(message.process)
        else if (message?.type === 'notice') options.onNotice(message.notice)
      })
    })
    this.exited = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve({ how: error.message, killed: false, clean: false }))
      this.#child.once('exit', (code, signal) => {
        const how = signal === null ? `code ${code}` : signal
        resolve({ how, killed: signal === 'SIGKILL', clean: code === 0 })
      })
    })
    this.#closed = new Promise((resolve) => this.#child.once('close', () => resolve()))
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  send(message: ToChild): void {
    // A message to a process that just died is lost with it; its exit is what counts.
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  /** After the exit: waits for its last words, not for children of its own that hold the pipe. */
  async drain(): Promise<void> {
    await Promise.race([this.#closed, delay(DRAIN_MS, undefined, { ref: false })])
  }
}

export interface Exit {
  readonly how: string
  readonly killed: boolean
  readonly clean: boolean
}

/** A child may be a zone with less privileges than ours: what it sends is parsed, never cast. */
function parseMessage(raw: unknown): FromChild | undefined {
  if (typeof raw !== 'object' || raw === null || !('type' in raw)) return undefined
  if (raw.type === 'kill' && 'process' in raw && typeof raw.process === 'string')
    return { type: 'kill', process: raw.process }
  if (raw.type === 'ready' && 'facts' in raw && typeof raw.facts === 'object' && raw.facts !== null)
    return { type: 'ready', facts: { ...raw.facts } }
  return parseNotice(raw)
}

function parseNotice(raw: object & { readonly type: unknown }): FromChild | undefined {
  if (raw.type !== 'notice' || !('notice' in raw) || typeof raw.notice !== 'object' || raw.notice === null)
    return undefined
  const { notice } = raw
  if (!('title' in notice) || !('details' in notice) || !('commands' in notice)) return undefined
  const { title, details, commands } = notice
  if (typeof title !== 'string' || !isWords(details) || !isWords(commands)) return undefined
  return { type: 'notice', notice: { title, details, commands } }
}

function isWords(raw: unknown): raw is readonly string[] {
  return Array.isArray(raw) && raw.length <= MAX_LINES && raw.every((item) => typeof item === 'string')
}
