import { isErrorCode } from '@airlock/contract/errors'
import { AirlockError } from '../errors.ts'
import { followEvents } from '../transport/event-stream.ts'
import type { Run as RunData, RunEvent, RunLog, RunMessage, JobState, RunSummary, SomeModelLimits } from '../nouns.ts'
import type { Transport } from '../transport/transport.ts'

export interface RunOptions {
  /** The default of the agent program when absent. */
  readonly model?: string | undefined
  /** Caps on the model calls of this run. */
  readonly budget?: SomeModelLimits | undefined
  readonly agent?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** The same key again answers the first run, so asking again after a broken connection does no harm. */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface RunListOptions {
  readonly state?: JobState | undefined
  readonly agent?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A run, as it was when the server last told. Iterating it follows its events from the beginning to its end. */
export class Run implements AsyncIterable<RunEvent> {
  readonly #transport: Transport
  #data: RunData

  /** @internal */
  constructor(transport: Transport, data: RunData) {
    this.#transport = transport
    this.#data = data
  }

  get id(): string {
    return this.#data.id
  }

  get data(): RunData {
    return this.#data
  }

  [Symbol.asyncIterator](): AsyncGenerator<RunEvent> {
    return this.events()
  }

  /** What it does after the event `from`, until it is done; over restarts of the server too. */
  async *events(
    options: { readonly from?: number; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<RunEvent> {
    const subjectOf = (event: RunEvent) => (event.event === 'started' ? event.run.id : undefined)
    const subject = { route: 'runEvents', params: { id: this.id }, subjectOf, last: 'done' } as const
    for await (const event of followEvents<RunEvent>(this.#transport, subject, options)) {
      if (event.event === 'done') this.#data = event.run
      yield event
    }
  }

  /** The pieces of the answer as they come. Throws why a run has none. */
  async *text(signal?: AbortSignal): AsyncGenerator<string> {
    for await (const event of this.events({ signal })) {
      if (event.event === 'text_delta') yield event.delta
      if (event.event === 'error') throw runError(event)
    }
  }

  /** Waits for the end and answers the whole text. Throws why a run has none. */
  async answer(signal?: AbortSignal): Promise<string> {
    for await (const event of this.events({ signal })) {
      if (event.event === 'assistant_final') return event.content
      if (event.event === 'error') throw runError(event)
    }
    throw new AirlockError('server_unreachable', 'The stream ended before the run.')
  }

  /** Asks again how it stands. */
  async refresh(signal?: AbortSignal): Promise<this> {
    this.#data = await this.#transport.json('getRun', { params: { id: this.id }, signal })
    return this
  }

  /** What its program has printed so far. */
  async log(signal?: AbortSignal): Promise<RunLog> {
    return this.#transport.json('runLog', { params: { id: this.id }, signal })
  }

  async cancel(signal?: AbortSignal): Promise<this> {
    this.#data = await this.#transport.json('cancelRun', { params: { id: this.id }, signal })
    return this
  }
}

/** Runs of agent programs: messages in, an answer out, each in a sandbox of its own. */
export class Runs {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Answers as soon as the run is queued. A text is one message of the user. */
  async start(graph: string, messages: string | readonly RunMessage[], options: RunOptions = {}): Promise<Run> {
    const { signal, ...rest } = options
    const given = typeof messages === 'string' ? [{ role: 'user' as const, content: messages }] : [...messages]
    const body = { graph, messages: given, ...rest }
    return new Run(this.#transport, await this.#transport.json('submitRun', { body, signal }))
  }

  async get(id: string, signal?: AbortSignal): Promise<Run> {
    return new Run(this.#transport, await this.#transport.json('getRun', { params: { id }, signal }))
  }

  /** One page, newest first. */
  async list(
    options: RunListOptions = {},
  ): Promise<{ readonly items: readonly RunSummary[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    return this.#transport.json('listRuns', { query, signal })
  }
}

/** Why a run has no answer, as an error with the hint of its code. */
export function runError({ code = 'internal', message }: Extract<RunEvent, { event: 'error' }>): AirlockError {
  return new AirlockError(isErrorCode(code) ? code : 'internal', message)
}
