import { collectResult, RunningCommand, streamCommand, type CommandLine, type CommandOptions } from './command.ts'
import { AirlockError } from './errors.ts'
import { SandboxFiles } from './files.ts'
import { followMetrics, Metrics, type MetricsOptions } from './metrics.ts'
import type {
  Command,
  CommandEvent,
  CommandResult,
  Connection,
  CreatedSandbox,
  CreateSandboxBody,
  MetricEvent,
  Sandbox as SandboxData,
  SandboxMetrics,
  SomeLimits,
} from './nouns.ts'
import type { Transport } from './transport/transport.ts'
import { SandboxWorktree } from './worktree.ts'

export type CreateOptions = Partial<CreateSandboxBody> & { readonly signal?: AbortSignal | undefined }

/** One sandbox: what was last known of it in `data`, and what can be done with it. */
export class Sandbox implements AsyncDisposable {
  readonly id: string
  readonly files: SandboxFiles
  /** For a sandbox that was created with one. */
  readonly worktree: SandboxWorktree
  readonly #transport: Transport
  #data: SandboxData
  /** Of one that was just created, or found by its name: its agent, and what it takes of the agent's budget. */
  readonly given: Pick<CreatedSandbox, 'agentSnapshot' | 'reserved'> | undefined

  /** @internal */
  constructor(transport: Transport, data: SandboxData | CreatedSandbox) {
    this.#transport = transport
    this.#data = data
    if ('reserved' in data) {
      const { agentSnapshot, reserved, ...rest } = data
      this.#data = rest
      this.given = { agentSnapshot, reserved }
    }
    this.id = data.id
    this.files = new SandboxFiles(transport, data.id)
    this.worktree = new SandboxWorktree(transport, data.id)
  }

  get data(): SandboxData {
    return this.#data
  }

  get name(): string | null {
    return this.#data.name
  }

  /** Runs a command to its end. A failing command is a result, not an error. */
  async run(command: CommandLine, options: CommandOptions = {}): Promise<CommandResult> {
    return collectResult(this.stream(command, options))
  }

  /** Runs a command, and answers its events as they come. Leaving the iteration does not end the command. */
  stream(command: CommandLine, options: CommandOptions = {}): AsyncGenerator<CommandEvent> {
    const { signal } = options
    return streamCommand(this.#transport, this.id, { body: commandBody(command, options), signal })
  }

  /** Starts a command, and answers as soon as it runs. */
  async start(command: CommandLine, options: CommandOptions = {}): Promise<RunningCommand> {
    const body = { ...commandBody(command, options), background: true }
    const { signal } = options
    return this.command((await this.#transport.json('runCommand', { params: this.#params, body, signal })).id)
  }

  /** A command that is already there. */
  command(id: string): RunningCommand {
    return new RunningCommand(this.#transport, { id, sandbox: this.id })
  }

  async commands(
    page: { readonly limit?: number; readonly cursor?: string; readonly signal?: AbortSignal } = {},
  ): Promise<{ readonly items: readonly Command[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = page
    return this.#transport.json('listCommands', { params: this.#params, query, signal })
  }

  async refresh(signal?: AbortSignal): Promise<this> {
    return this.#update(await this.#transport.json('getSandbox', { params: this.#params, signal }))
  }

  /** Gives it a new token for its door, and answers what a program inside needs to reach the server. */
  async connect(options: { readonly revoke?: boolean; readonly signal?: AbortSignal } = {}): Promise<Connection> {
    const { revoke = false, signal } = options
    return this.#transport.json('connectSandbox', { params: this.#params, body: { revoke }, signal })
  }

  /** Lives `ttlMs` from now, or its own TTL; never past its maximum lifetime. */
  async extend(ttlMs?: number, signal?: AbortSignal): Promise<this> {
    const body = ttlMs === undefined ? {} : { ttlMs }
    return this.#update(await this.#transport.json('extendSandbox', { params: this.#params, body, signal }))
  }

  /** Holds it to other limits from now on, all of them or none; what is absent stays. */
  async setLimits(body: SomeLimits, signal?: AbortSignal): Promise<this> {
    return this.#update(await this.#transport.json('changeLimits', { params: this.#params, body, signal }))
  }

  /** Stops its processes where they stand; its time stops too. Pausing it again does nothing. */
  async pause(signal?: AbortSignal): Promise<this> {
    return this.#update(await this.#transport.json('pauseSandbox', { params: this.#params, signal }))
  }

  /** Lets it go on with the time that it had left. Resuming it again does nothing. */
  async resume(signal?: AbortSignal): Promise<this> {
    return this.#update(await this.#transport.json('resumeSandbox', { params: this.#params, signal }))
  }

  /** What it uses now and used before. */
  async metrics(options: MetricsOptions = {}): Promise<SandboxMetrics> {
    return new Metrics(this.#transport).sandbox(this.id, options)
  }

  /** What it is beyond now and its latest sample, then each new one, until it has ended. */
  followMetrics(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<MetricEvent> {
    return followMetrics(this.#transport, this.id, options.signal)
  }

  /** Ends it. Ending it again does nothing. */
  async terminate(options: { readonly force?: boolean; readonly signal?: AbortSignal } = {}): Promise<this> {
    const { force = false, signal } = options
    return this.#update(
      await this.#transport.json('terminateSandbox', { params: this.#params, body: { force }, signal }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminate()
  }

  get #params(): { readonly id: string } {
    return { id: this.id }
  }

  #update(data: SandboxData): this {
    this.#data = data
    return this
  }
}

function commandBody(command: CommandLine, options: CommandOptions): object {
  if (!isRecord(options)) throw notACommand()
  const { signal: _, ...rest } = options
  return { ...wordsOf(command), ...rest }
}

/** Where types are only stripped, a program may give anything. */
function wordsOf(command: unknown): { readonly shell: unknown } | { readonly argv: readonly unknown[] } {
  if (typeof command === 'string') return { shell: command }
  if (Array.isArray(command)) return { argv: command }
  if (isRecord(command) && 'shell' in command) return { shell: command.shell }
  throw notACommand()
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function notACommand(): AirlockError {
  return new AirlockError('invalid_request', 'A command is a line of shell or one array of words.', {
    hint: "Write run('ls -la') or run(['ls', '-la']); options come second, as an object.",
  })
}
