import { setTimeout as delay } from 'node:timers/promises'
import { isArmedInFile } from '@airlock/contract'
import { type Notice, sleep, type StopMode, type ToChild } from '@airlock/std'
import { parseLogLine, type LogLine } from './log-line.ts'
import type { ProcessSpec } from './processes.ts'
import { Run, type Facts } from './run.ts'

const READY_MS = 120_000
const HEALTHY_MS = 30_000
const BACKOFF_MS = { first: 100, most: 5_000 }
/** Enough for the stack of a crash. */
const LAST_WORDS = 50

/** What a child needs from whoever supervises it. */
export interface ChildHost {
  readonly environment: (settings: ProcessSpec['settings']) => Record<string, string>
  readonly onLine: (line: string, parsed: LogLine) => void
  /** Something that people at the terminal want to know. */
  readonly onEvent: (level: 'info' | 'warn', text: string) => void
  readonly onPid: (name: string, pid: number | undefined) => void
  readonly onKill: (from: Child, victim: string) => void
  readonly onNotice: (notice: Notice) => void
}

export type Started =
  | { readonly status: 'ready'; readonly facts: Facts }
  | { readonly status: 'failed'; readonly reason: string }
  | { readonly status: 'stopped' }

/** One process under supervision, over all its lives: once it was ready, it is restarted until it is told to stop. */
export class Child {
  readonly name: string
  readonly #spec: ProcessSpec
  readonly #host: ChildHost
  readonly #stopping = new AbortController()
  #run: Run | undefined
  #wasReady = false
  #lastWords: LogLine[] = []

  constructor(spec: ProcessSpec, host: ChildHost) {
    this.name = spec.name
    this.#spec = spec
    this.#host = host
  }

  /** Its first start. One that fails is not tried again: what it said is the reason. */
  async start(): Promise<Started> {
    let run = this.#fork(this.#spec.settings)
    let outcome = await this.#waitUntilReady(run)
    if (outcome === 'exited' && this.#spec.settings.failpoint !== null && (await run.exited).killed) {
      // A test killed it on purpose while it started.
      this.#host.onEvent('warn', `${this.name} died (SIGKILL) and is restarted`)
      run = this.#fork(disarmed(this.#spec.settings))
      outcome = await this.#waitUntilReady(run)
    }
    if (this.#stopping.signal.aborted) return { status: 'stopped' }
    if (outcome === 'late') run.kill()
    if (outcome === 'late' || outcome === 'exited')
      return { status: 'failed', reason: await this.#reason(run, outcome) }
    this.#wasReady = true
    void this.#keepAlive(run)
    return { status: 'ready', facts: outcome }
  }

  /** Tells whether it went by itself, within its bound. */
  async stop(mode: StopMode): Promise<'clean' | 'forced'> {
    this.#stopping.abort()
    const run = this.#run
    if (!run) return 'clean'
    run.send({ type: 'stop', mode })
    const bound = new AbortController()
    const exit = await Promise.race([run.exited, delay(this.#spec.stopMs, undefined, { signal: bound.signal })])
    bound.abort()
    if (exit) await run.drain()
    else await this.kill()
    return exit?.clean === true ? 'clean' : 'forced'
  }

  /** As a crash: the process alone, at once. */
  async kill(): Promise<void> {
    const run = this.#run
    run?.kill()
    await run?.exited
  }

  /** Kills it for good. */
  end(): void {
    this.#stopping.abort()
    this.#run?.kill()
  }

  send(message: ToChild): void {
    this.#run?.send(message)
  }

  async #keepAlive(first: Run): Promise<void> {
    let run = first
    let backoffMs = BACKOFF_MS.first
    for (;;) {
      const since = performance.now()
      const exit = await run.exited
      if (this.#stopping.signal.aborted) return
      if (performance.now() - since >= HEALTHY_MS) backoffMs = BACKOFF_MS.first
      this.#host.onEvent('warn', `${this.name} died (${exit.how}) and is restarted`)
      if (!(await this.#pause(backoffMs))) return
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MS.most)
      run = this.#fork(disarmed(this.#spec.settings))
      const outcome = await this.#waitUntilReady(run)
      if (outcome === 'late') run.kill()
      if (typeof outcome === 'object') this.#host.onEvent('info', `${this.name} is back`)
    }
  }

  /** False when it was told to stop meanwhile. */
  async #pause(ms: number): Promise<boolean> {
    await sleep(ms, this.#stopping.signal).catch(() => undefined)
    return !this.#stopping.signal.aborted
  }

  async #waitUntilReady(run: Run): Promise<Facts | 'exited' | 'late'> {
    const bound = new AbortController()
    const outcome = await Promise.race([
      run.ready,
      run.exited.then(() => 'exited' as const),
      delay(READY_MS, 'late' as const, { signal: bound.signal }),
    ])
    bound.abort()
    return outcome
  }

  #fork(settings: ProcessSpec['settings']): Run {
    this.#lastWords = []
    const run = new Run({
      main: this.#spec.main,
      env: { ...this.#host.environment(settings), ...this.#spec.environment },
      core: this.#spec.core,
      onLine: (line) => this.#hear(line),
      onKill: (victim) => this.#host.onKill(this, victim),
      onNotice: (notice) => this.#host.onNotice(notice),
    })
    this.#run = run
    this.#host.onPid(this.name, run.pid)
    void run.exited.then(() => this.#forget(run))
    return run
  }

  #forget(run: Run): void {
    if (this.#run !== run) return
    this.#run = undefined
    this.#host.onPid(this.name, undefined)
  }

  /** Errors of a first start are kept back: they are the reason that is told once, at the end. */
  #hear(line: string): void {
    const parsed = parseLogLine(this.name, line)
    if (parsed.level === 'error') this.#lastWords = [...this.#lastWords, parsed].slice(-LAST_WORDS)
    const held = parsed.level === 'error' && !this.#wasReady
    this.#host.onLine(line, held ? { ...parsed, level: 'debug' } : parsed)
  }

  async #reason(run: Run, outcome: 'exited' | 'late'): Promise<string> {
    const exit = await run.exited
    await run.drain()
    const said = this.#lastWords.findLast((line) => line.structured)?.text
    if (said !== undefined) return `${this.name}: ${said}`
    const crash = this.#lastWords.find((line) => /^\w*Error\b.*: /u.test(line.text))?.text
    if (crash !== undefined) return `${this.name}: ${crash}`
    const raw = this.#lastWords.map((line) => `\n  ${line.text}`).join('')
    const how = outcome === 'late' ? `was not ready within ${READY_MS / 1000} s` : `ended with ${exit.how}`
    return `${this.name} ${how}${raw}`
  }
}

/** A failpoint fires once: the next life must not die of it again. One in a file was taken from there as it fired. */
function disarmed(settings: ProcessSpec['settings']): ProcessSpec['settings'] {
  if (isArmedInFile(settings.failpoint)) return settings
  return { ...settings, failpoint: null }
}
