import { randomUUID } from 'node:crypto'
import { unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GuestSession, GuestSessionSpec } from '@airlock/contract/guest'
import type { AwakeClock } from '../awake-clock.ts'
import { GuestFailure, toGuestError } from '../failure.ts'
import type { FifoPool } from '../process/fifo-pool.ts'
import type { Launcher } from '../process/launch.ts'
import { OutputPairs } from '../process/output-pairs.ts'
import type { DriverError, DriverMessage, Kernel, KernelPlaces } from './driver.ts'
import { Interpreter } from './interpreter.ts'
import type { Step, StepOutcome } from './step.ts'
import { crashed, type Ending, errorOf, interrupted, signalOf, type Turn } from './turn.ts'

/** Steps that wait for their turn. */
export const WAITING_LIMIT = 32

/** How long after its deadline a step may obey the interrupt. */
const GRACE_MS = 1000

const NO_STDIN = '/dev/null'

export interface SessionParts {
  readonly launcher: Launcher
  readonly clock: AwakeClock
  readonly kernel: Kernel
  readonly places: KernelPlaces
  readonly fifos: FifoPool
  /** Where the stdin of a step lies while it runs. */
  readonly stepsDir: string
}

/** An interpreter that remembers, and the steps that take turns in it. It is started anew whenever it dies. */
export class Session {
  readonly spec: GuestSessionSpec
  readonly #parts: SessionParts
  readonly #pairs: OutputPairs
  readonly #waiting: Step[] = []
  #turn: Turn | undefined
  #isWorking = false
  #interpreter: Interpreter | undefined
  #starting: Promise<Interpreter> | undefined
  /** The end of one that we killed: the next enters the same group. */
  #ending: Promise<void> = Promise.resolve()
  #version = ''
  #restarts = 0
  /** It died between two steps, and the next one must say so. */
  #owesRestarted = false
  #broken: GuestFailure | undefined
  #isClosed = false

  constructor(spec: GuestSessionSpec, parts: SessionParts) {
    this.spec = spec
    this.#parts = parts
    this.#pairs = new OutputPairs(parts.fifos)
  }

  get info(): GuestSession {
    const { id, runtime } = this.spec
    return { id, runtime, runtimeVersion: this.#version, restarts: this.#restarts }
  }

  async open(): Promise<void> {
    const { launcher, fifos } = this.#parts
    launcher.groups.make(this.spec.id)
    // A failure is told to the first step that needs one.
    void fifos.refill().catch(() => undefined)
    try {
      await this.#start()
    } catch (error) {
      launcher.groups.release(this.spec.id)
      throw error
    }
  }

  add(step: Step): void {
    this.#throwWhenClosed()
    if (this.#broken) throw this.#broken
    if (this.#waiting.length >= WAITING_LIMIT)
      throw new GuestFailure('too_many_steps', `at most ${WAITING_LIMIT} steps wait in a session`)
    this.#waiting.push(step)
    if (!this.#isWorking) void this.#work()
  }

  /** Of the step that runs, if any. */
  interrupt(): void {
    const turn = this.#turn
    if (!turn) return
    turn.cause ??= 'interrupt'
    this.#stop(turn)
  }

  /** Takes back one that waits, interrupts one that runs, or kills what it runs in. */
  async stop(step: Step, how: 'interrupt' | 'kill'): Promise<void> {
    const place = this.#waiting.indexOf(step)
    if (place !== -1) {
      this.#waiting.splice(place, 1)
      await this.#endUnrun(step, interrupted('it was taken back before its turn'))
    } else if (this.#turn?.step !== step) throw new GuestFailure('command_ended', 'the step has ended')
    else if (how === 'interrupt') this.interrupt()
    else await this.#kill('it was killed')
  }

  /** The step that runs is cut off; those that wait run in the new interpreter. */
  async restart(): Promise<void> {
    this.#throwWhenClosed()
    if (this.#turn) this.#turn.cause ??= 'restart'
    // One that cannot start is what a restart is for.
    await this.#starting?.catch(() => undefined)
    await this.#kill('the session was restarted')
    this.#broken = undefined
    await this.#start()
  }

  /** Resolves when no process of it is left. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#turn) this.#turn.cause ??= 'close'
    const waiting = this.#waiting.splice(0)
    // There is nothing to kill of one that could not start.
    await this.#starting?.catch(() => undefined)
    await this.#kill('the session was closed')
    this.#parts.launcher.groups.release(this.spec.id)
    for (const step of waiting) void this.#endUnrun(step, interrupted('the session was closed'))
    this.#pairs.destroy()
  }

  #throwWhenClosed(): void {
    if (this.#isClosed) throw new GuestFailure('session_not_found', 'the session is closed')
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    try {
      for (let step = this.#waiting.shift(); step; step = this.#waiting.shift()) await this.#take(step)
    } finally {
      this.#isWorking = false
    }
  }

  /** Whatever goes wrong here is the end of the step, never of the session. */
  async #take(step: Step): Promise<void> {
    // Costs a fraction of so many random bytes.
    const nonce = randomUUID().replaceAll('-', '')
    const turn: Turn = { step, nonce, over: Promise.withResolvers(), interpreter: undefined, cause: undefined }
    this.#turn = turn
    let outcome: StepOutcome
    try {
      outcome = await this.#run(turn)
    } catch (error) {
      const timedOut = turn.cause === 'timeout'
      outcome = { error: crashed(toGuestError(error).message), timedOut, signal: null, restarted: false }
    }
    this.#turn = undefined
    await step.end(outcome, this.#pairs)
  }

  async #run(turn: Turn): Promise<StepOutcome> {
    const { step, nonce } = turn
    step.begin(await this.#pairs.take())
    const stdin = this.#writeStdin(step.spec.stdin, nonce)
    const cancelTimeout = this.#parts.clock.after(step.spec.timeoutMs, () => this.#onTimeout(turn))
    try {
      const interpreter = await this.#start()
      const wasRestarted = this.#owesRestarted
      this.#owesRestarted = false
      turn.interpreter = interpreter
      const ending = turn.cause === undefined ? await this.#execute(turn, interpreter, stdin) : NOT_BEGUN
      return await this.#judge(turn, ending, wasRestarted)
    } finally {
      cancelTimeout()
      if (stdin !== NO_STDIN) unlinkSync(stdin)
    }
  }

  async #execute({ step, nonce, over }: Turn, interpreter: Interpreter, stdin: string): Promise<Ending> {
    const { code, env } = step.spec
    interpreter.send(this.#parts.kernel.encodeStep({ type: 'step', nonce, code, env, stdin, ...step.outputs }))
    step.listen()
    // It says nothing any more when it died meanwhile.
    if (this.#interpreter !== interpreter) return { kind: 'died', how: 'it ended as the step began', signal: null }
    return await over.promise
  }

  /** Before it says that the interpreter was started anew, that is so. */
  async #judge(turn: Turn, ending: Ending, wasRestarted: boolean): Promise<StepOutcome> {
    const error = errorOf(turn, ending)
    const timedOut = turn.cause === 'timeout'
    const signal = error ? signalOf(turn, ending) : null
    const isGone = this.#interpreter !== turn.interpreter
    if (!isGone || this.#isClosed) return { error, timedOut, signal, restarted: wasRestarted }
    const isBack = await this.#start().then(
      () => true,
      // Later steps are told: the session is broken.
      () => false,
    )
    return { error, timedOut, signal, restarted: isBack }
  }

  #onTimeout(turn: Turn): void {
    if (turn.cause === undefined || turn.cause === 'interrupt') turn.cause = 'timeout'
    this.#stop(turn)
    setTimeout(() => {
      // What does not die is the host's to end.
      if (this.#turn === turn) void this.#kill('it ran too long').catch(() => undefined)
    }, GRACE_MS)
  }

  #stop({ interpreter, nonce }: Turn): void {
    const { interrupt } = this.#parts.kernel
    if (interrupt.encode) interpreter?.send(interrupt.encode(nonce))
    if (interrupt.signal) interpreter?.interrupt()
  }

  async #kill(why: string): Promise<void> {
    const interpreter = this.#interpreter
    this.#interpreter = undefined
    if (interpreter) this.#ending = interpreter.kill(why)
    await this.#ending
  }

  /** Starts the interpreter unless there is one. Where it cannot be started the session is broken until a restart. */
  async #start(): Promise<Interpreter> {
    if (this.#broken) throw this.#broken
    if (this.#interpreter) return this.#interpreter
    this.#starting ??= this.#launch().finally(() => (this.#starting = undefined))
    return await this.#starting
  }

  async #launch(): Promise<Interpreter> {
    const { launcher, kernel, places } = this.#parts
    const { id, cwd, env, limits } = this.spec
    const start = { group: id, argv: kernel.argv(places), cwd, env: { ...launcher.env, ...kernel.env, ...env }, limits }
    try {
      await this.#ending
      const interpreter: Interpreter = new Interpreter(launcher, start, {
        message: (message) => this.#onMessage(message),
        died: (how, signal) => this.#onDeath(interpreter, { kind: 'died', how, signal }),
      })
      const version = await interpreter.ready()
      if (this.#version !== '') this.#restarts++
      this.#version = version
      this.#interpreter = interpreter
      return interpreter
    } catch (error) {
      this.#broken = new GuestFailure('runtime_crashed', toGuestError(error).message)
      throw this.#broken
    }
  }

  #onMessage(message: DriverMessage): void {
    const turn = this.#turn
    if (!turn || message.type === 'ready' || message.nonce !== turn.nonce) return
    if (message.type === 'rich') turn.step.rich(message.line)
    else turn.over.resolve({ kind: 'done', status: message.status })
  }

  #onDeath(interpreter: Interpreter, ending: Ending): void {
    const isUnexpected = this.#interpreter === interpreter
    if (isUnexpected) this.#interpreter = undefined
    if (this.#turn?.interpreter === interpreter) this.#turn.over.resolve(ending)
    else if (isUnexpected && !this.#isClosed) {
      this.#owesRestarted = true
      // A failure is told to the step that needs it.
      void this.#start().catch(() => undefined)
    }
  }

  /** User code may read it and not change it; whoever still reads that of an earlier step keeps it. */
  #writeStdin(text: string, nonce: string): string {
    if (text === '') return NO_STDIN
    const path = join(this.#parts.stepsDir, `stdin-${nonce}`)
    writeFileSync(path, text, { flag: 'wx', mode: 0o444 })
    return path
  }

  async #endUnrun(step: Step, error: DriverError): Promise<void> {
    await step.end({ error, timedOut: false, signal: 'SIGINT', restarted: false }, this.#pairs)
  }
}

/** It was stopped before its code was sent. */
const NOT_BEGUN: Ending = { kind: 'done', status: 'failed' }
