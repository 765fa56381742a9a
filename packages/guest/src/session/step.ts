import { setImmediate } from 'node:timers/promises'
import type { GuestCommandState, GuestStepSpec } from '@airlock/contract/guest'
import type { Outbox } from '../outbox.ts'
import { OutputChannel } from '../process/output-channel.ts'
import type { OutputPair } from '../process/output-pair.ts'
import type { OutputPairs } from '../process/output-pairs.ts'
import type { DriverError, DriverRichLine } from './driver.ts'
import { RichOutput } from './rich-output.ts'

/** Whoever is done by then is heard at its end, and needs no readers. */
const SHORT_MS = 2

type ShownLine = Exclude<DriverRichLine, { kind: 'error' }>

export interface StepOutcome {
  readonly error: DriverError | undefined
  readonly timedOut: boolean
  /** Of a step that failed: what ended its interpreter, or it. */
  readonly signal: string | null
  readonly restarted: boolean
}

/** One piece of code for a session, waiting, running or over. To the host it looks like a command. */
export class Step {
  readonly spec: GuestStepSpec
  readonly startedMs = Date.now()
  readonly #output: OutputChannel
  readonly #rich: RichOutput
  #began = process.hrtime.bigint()
  #room = Promise.withResolvers<void>()
  #pair: OutputPair | undefined
  #error: DriverError | undefined
  /** The last that the code shows: it comes with whatever comes next. */
  #result: ShownLine | undefined
  #hearing: NodeJS.Timeout | undefined

  constructor(spec: GuestStepSpec, outbox: Outbox) {
    this.spec = spec
    this.#output = new OutputChannel(spec, outbox, { pause: () => this.#pair?.pause(), resume: () => this.#resume() })
    this.#rich = new RichOutput((bytes) => this.#output.rich(bytes))
  }

  get isOver(): boolean {
    return this.#output.isEnded
  }

  get state(): GuestCommandState {
    return this.#output.state
  }

  /** Where its code writes. */
  get outputs(): { readonly stdout: string; readonly stderr: string } {
    return { stdout: this.#pair?.stdout ?? '/dev/null', stderr: this.#pair?.stderr ?? '/dev/null' }
  }

  /** What the code threw, as the driver says. */
  get error(): DriverError | undefined {
    return this.#error
  }

  attached(received: number): void {
    this.#output.attached(received)
  }

  acknowledge(offset: number): void {
    this.#output.acknowledge(offset)
  }

  begin(pair: OutputPair): void {
    this.#began = process.hrtime.bigint()
    pair.open(this.#output)
    this.#pair = pair
  }

  /** Its code has been sent: what it says is heard as it comes, soon. */
  listen(): void {
    this.#hearing = setTimeout(() => {
      this.#hearing = undefined
      if (!this.#output.isPaused) this.#pair?.listen()
    }, SHORT_MS)
  }

  /** Text that was written before comes before. */
  rich(line: DriverRichLine): void {
    if (line.kind === 'error') {
      this.#error = line.error
      return
    }
    // Nothing is drained for it: mostly it is heard together with the end, where everything is.
    if (line.kind === 'result' && !this.#result) this.#result = line
    else this.#show(line)
  }

  #show(line: ShownLine): void {
    this.#pair?.drain(this.#output)
    this.#showResult()
    this.#rich.add(line)
  }

  #showResult(): void {
    if (this.#result) this.#rich.add(this.#result)
    this.#result = undefined
  }

  /** Says how it ended at once, and closes with what was written before. Resolves when the host has most of it. */
  async end(outcome: StepOutcome, pairs: OutputPairs): Promise<void> {
    const durationMs = Number(process.hrtime.bigint() - this.#began) / 1e6
    const { error, timedOut, signal, restarted } = outcome
    clearTimeout(this.#hearing)
    this.#output.end({ exitCode: error ? 1 : 0, signal, timedOut, durationMs, restarted })
    try {
      await this.#drain(pairs)
    } finally {
      this.#showResult()
      if (error) this.#rich.error(error)
      this.#output.close()
    }
    while (this.#output.isPaused) await this.#awaitRoom()
  }

  async #drain(pairs: OutputPairs): Promise<void> {
    const pair = this.#pair
    if (!pair) return
    while (!pair.drain(this.#output)) await this.#awaitRoom()
    this.#pair = undefined
    pairs.giveBack(pair)
  }

  async #awaitRoom(): Promise<void> {
    this.#room = Promise.withResolvers()
    if (this.#output.isPaused) await this.#room.promise
    // What the pipes had read before the pause comes first.
    await setImmediate()
  }

  #resume(): void {
    if (this.#hearing === undefined) this.#pair?.listen()
    this.#pair?.resume()
    this.#room.resolve()
  }
}
