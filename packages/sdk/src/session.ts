import { SandboxFiles } from './files.ts'
import type { CreateSessionBody, Runtime, Session as SessionData, SessionState, Step, StepEvent } from './nouns.ts'
import { type CreateOptions, Sandbox } from './sandbox.ts'
import { collectStep, SessionStep, streamStep, type StepCallbacks, type StepOptions, type StepResult } from './step.ts'
import type { Transport } from './transport/transport.ts'

type Settings = Partial<Omit<CreateSessionBody, 'runtime' | 'sandbox' | 'create'>>

export interface SessionOptions extends Settings {
  readonly runtime: Runtime
  /** A living sandbox to open it in: itself, or its id. */
  readonly sandbox?: string | { readonly id: string } | undefined
  /** The sandbox to make for it, which ends with it. With neither, Python gets one with the template `data`. */
  readonly create?: Omit<CreateOptions, 'signal'> | undefined
  readonly signal?: AbortSignal | undefined
}

export interface SessionListOptions {
  readonly state?: SessionState | 'all' | undefined
  readonly sandbox?: string | undefined
  readonly agent?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** An interpreter that remembers: what was last known of it in `data`, and what can be done with it. */
export class Session implements AsyncDisposable {
  readonly id: string
  readonly runtime: Runtime
  /** The files of its sandbox. */
  readonly files: SandboxFiles
  readonly #transport: Transport
  #data: SessionData

  /** @internal */
  constructor(transport: Transport, data: SessionData) {
    this.#transport = transport
    this.#data = data
    this.id = data.id
    this.runtime = data.runtime
    this.files = new SandboxFiles(transport, data.sandbox)
  }

  get data(): SessionData {
    return this.#data
  }

  /**
   * Runs code to its end. Code that fails is a result, with `status` "failed" and an `error`, not a rejection. When the
   * signal aborts, the step is interrupted and the promise rejects; what the session remembers is kept.
   */
  async run(code: string, options: StepOptions & StepCallbacks = {}): Promise<StepResult> {
    const { onStdout, onStderr, onOutput, ...rest } = options
    return collectStep(this.stream(code, rest), {
      ...(onStdout && { onStdout }),
      ...(onStderr && { onStderr }),
      ...(onOutput && { onOutput }),
    })
  }

  /** Runs code, and answers its events as they come. Leaving the iteration does not end the step. */
  stream(code: string, options: StepOptions = {}): AsyncGenerator<StepEvent> {
    return streamStep(this.#transport, this.id, { code, options })
  }

  /** A step that is already there. */
  step(id: string): SessionStep {
    return new SessionStep(this.#transport, { id, session: this.id })
  }

  /** One page, newest first. */
  async steps(
    page: { readonly limit?: number; readonly cursor?: string; readonly signal?: AbortSignal } = {},
  ): Promise<{ readonly items: readonly Step[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = page
    return this.#transport.json('listSteps', { params: this.#params, query, signal })
  }

  /** The sandbox that it runs in, for commands beside it. */
  async sandbox(signal?: AbortSignal): Promise<Sandbox> {
    const params = { id: this.#data.sandbox }
    return new Sandbox(this.#transport, await this.#transport.json('getSandbox', { params, signal }))
  }

  /** Interrupts the step that runs, like Ctrl-C; what the session remembers is kept. */
  async interrupt(signal?: AbortSignal): Promise<void> {
    await this.#transport.send('interruptSession', { params: this.#params, signal })
  }

  /** Starts the interpreter anew: what it remembered is gone, files stay. */
  async restart(signal?: AbortSignal): Promise<this> {
    return this.#update(await this.#transport.json('restartSession', { params: this.#params, signal }))
  }

  async refresh(signal?: AbortSignal): Promise<this> {
    return this.#update(await this.#transport.json('getSession', { params: this.#params, signal }))
  }

  /** Ends it, and the sandbox that was made for it. Ending it again does nothing. */
  async terminate(signal?: AbortSignal): Promise<this> {
    return this.#update(await this.#transport.json('terminateSession', { params: this.#params, signal }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminate()
  }

  get #params(): { readonly id: string } {
    return { id: this.id }
  }

  #update(data: SessionData): this {
    this.#data = data
    return this
  }
}

export class Sessions {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Answers when the interpreter waits for its first step. */
  async create(options: SessionOptions): Promise<Session> {
    const { signal, sandbox, ...rest } = options
    const body = { ...rest, sandbox: typeof sandbox === 'object' ? sandbox.id : sandbox }
    return new Session(this.#transport, await this.#transport.json('createSession', { body, signal }))
  }

  async get(id: string, signal?: AbortSignal): Promise<Session> {
    return new Session(this.#transport, await this.#transport.json('getSession', { params: { id }, signal }))
  }

  /** One page, newest first: the active ones unless a state is asked for. */
  async list(
    options: SessionListOptions = {},
  ): Promise<{ readonly items: readonly Session[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    const page = await this.#transport.json('listSessions', { query, signal })
    return { items: page.items.map((data) => new Session(this.#transport, data)), nextCursor: page.nextCursor }
  }
}
