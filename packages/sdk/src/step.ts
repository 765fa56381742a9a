import { outputBytes } from './command.ts'
import { AirlockError } from './errors.ts'
import { eventsOf, followEvents, Patience, type Progress, type Subject } from './transport/event-stream.ts'
import type { Step, StepEvent } from './nouns.ts'
import { RichOutput } from './rich-output.ts'
import { isRefused, pause, type Transport } from './transport/transport.ts'

export interface StepOptions {
  /** Yours: the same id again answers the first result and runs nothing. One is made where none is given. */
  readonly stepId?: string | undefined
  readonly timeoutMs?: number | undefined
  /** For this step only. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** What `input()` and reads of stdin get. */
  readonly stdin?: string | undefined
  readonly maxOutputBytes?: number | undefined
  /** Interrupts the step, and ends the waiting. */
  readonly signal?: AbortSignal | undefined
}

/** Called while the step runs; one that answers a promise holds the others back. */
export interface StepCallbacks {
  readonly onStdout?: (text: string) => unknown
  readonly onStderr?: (text: string) => unknown
  readonly onOutput?: (output: RichOutput) => unknown
}

export interface StepResult extends Step {
  readonly stdout: string
  readonly stderr: string
  readonly outputs: readonly RichOutput[]
}

type StepParams = Readonly<Record<'id' | 'step', string>>

/** One step of a session, running or ended. Iterating it follows its events from the beginning, every time. */
export class SessionStep implements AsyncIterable<StepEvent> {
  readonly id: string
  readonly session: string
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport, of: { readonly id: string; readonly session: string }) {
    this.#transport = transport
    this.id = of.id
    this.session = of.session
  }

  [Symbol.asyncIterator](): AsyncGenerator<StepEvent> {
    return this.events()
  }

  /** What it says from the byte `from` on, until it has ended. */
  events(
    options: { readonly from?: number; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<StepEvent> {
    return followEvents(this.#transport, subjectOf(this.#params), options)
  }

  /** How it stands now. */
  async get(signal?: AbortSignal): Promise<Step> {
    return this.#transport.json('getStep', { params: this.#params, signal })
  }

  /** What there is of its result now, without waiting. */
  async output(signal?: AbortSignal): Promise<StepResult> {
    const { outputs, ...rest } = await this.#transport.json('stepOutput', { params: this.#params, signal })
    return { ...rest, outputs: outputs.map((output) => new RichOutput(output)) }
  }

  /** Waits for its end, and answers its whole result. */
  async wait(options: StepCallbacks & { readonly signal?: AbortSignal | undefined } = {}): Promise<StepResult> {
    return collectStep(this.events({ signal: options.signal }), options)
  }

  /** Interrupts it alone, like Ctrl-C; takes it back when its turn has not come. What has ended stays as it is. */
  async interrupt(signal?: AbortSignal): Promise<void> {
    const call = { params: { id: this.session }, query: { step: this.id }, signal }
    await this.#transport.send('interruptSession', call)
  }

  get #params(): StepParams {
    return { id: this.session, step: this.id }
  }
}

/**
 * Runs code over one connection. When that breaks, goes on with the output route where it was; when nobody can say
 * whether the step arrived, it is sent again under the same id, which runs it at most once.
 * @internal
 */
export async function* streamStep(
  transport: Transport,
  session: string,
  run: { readonly code: string; readonly options: StepOptions },
): AsyncGenerator<StepEvent> {
  const { signal, stepId = crypto.randomUUID(), ...rest } = run.options
  const body = { code: run.code, stepId, ...rest }
  try {
    const progress: Progress = { from: 0, subject: undefined, ended: false }
    const patience = new Patience(signal)
    while (progress.subject === undefined) {
      const response = await sendStep(transport, session, { body, signal })
      yield* eventsOf(response, { subjectOf: startedStep }, { progress, signal })
      if (progress.ended) return
      if (progress.subject === undefined) await patience.pause()
    }
    const subject = subjectOf({ id: session, step: progress.subject })
    yield* followEvents(transport, subject, { from: progress.from, resumes: progress.subject, signal })
  } catch (error) {
    if (signal?.aborted === true) await interruptStep(transport, session, stepId)
    throw error
  }
}

/** @internal */
export async function collectStep(
  events: AsyncIterable<StepEvent>,
  callbacks: StepCallbacks = {},
): Promise<StepResult> {
  const text = { stdout: new TextCollector(callbacks.onStdout), stderr: new TextCollector(callbacks.onStderr) }
  const outputs: RichOutput[] = []
  let step: Step | undefined
  for await (const event of events) {
    if (event.event === 'output') await text[event.stream].push(outputBytes(event))
    else if (event.event === 'ended') ({ step } = event)
    else if (event.event === 'rich') {
      const output = new RichOutput(event.output)
      outputs.push(output)
      await callbacks.onOutput?.(output)
    }
  }
  if (!step) throw new AirlockError('server_unreachable', 'The stream ended before the step.')
  return { ...step, stdout: await text.stdout.finish(), stderr: await text.stderr.finish(), outputs }
}

/** Text of bytes that may be cut anywhere. */
class TextCollector {
  readonly #decoder = new TextDecoder()
  readonly #parts: string[] = []
  readonly #callback: ((text: string) => unknown) | undefined

  constructor(callback: ((text: string) => unknown) | undefined) {
    this.#callback = callback
  }

  async push(bytes: Uint8Array): Promise<void> {
    await this.#add(this.#decoder.decode(bytes, { stream: true }))
  }

  async finish(): Promise<string> {
    await this.#add(this.#decoder.decode())
    return this.#parts.join('')
  }

  async #add(text: string): Promise<void> {
    if (text === '') return
    this.#parts.push(text)
    await this.#callback?.(text)
  }
}

const RETRIES = 2
const BACKOFF_MS = 100

/**
 * A server that refuses for now is asked twice more. A connection that broke may have brought the step there: from then
 * on it is asked as patiently as for the output.
 */
async function sendStep(
  transport: Transport,
  session: string,
  { body, signal }: { readonly body: object; readonly signal: AbortSignal | undefined },
): Promise<Response> {
  const headers = { accept: 'text/event-stream' }
  const patience = new Patience(signal)
  let isUnsure = false
  for (let attempt = 0; ; attempt++) {
    try {
      return await transport.send('runStep', { params: { id: session }, body, headers, signal })
    } catch (error) {
      if (!(error instanceof AirlockError) || !error.retryable) throw error
      isUnsure ||= error.code === 'server_unreachable' && !isRefused(error.cause)
      if (isUnsure) await patience.pause()
      else if (attempt < RETRIES && error.code !== 'server_unreachable') await pause(BACKOFF_MS * 2 ** attempt, signal)
      else throw error
    }
  }
}

const INTERRUPT_MS = 10_000
const RECENT_STEPS = 50

/** Only the step that was asked for: another one that runs meanwhile is not ours to interrupt. */
async function interruptStep(transport: Transport, session: string, stepId: string): Promise<void> {
  const params = { id: session }
  const signal = AbortSignal.timeout(INTERRUPT_MS)
  try {
    const { items } = await transport.json('listSteps', { params, query: { limit: RECENT_STEPS }, signal })
    const step = items.find((one) => one.stepId === stepId)?.id
    if (step !== undefined) await transport.send('interruptSession', { params, query: { step }, signal })
  } catch {
    // Whoever aborts hears of that alone; what cannot be interrupted ends by its timeout.
  }
}

function subjectOf(params: StepParams): Subject<StepEvent> {
  return { route: 'stepOutput', params, subjectOf: startedStep }
}

function startedStep(event: StepEvent): string | undefined {
  return event.event === 'started' ? event.step.id : undefined
}
