import { decodeBase64 } from './transport/base64.ts'
import { AirlockError } from './errors.ts'
import { eventsOf, followEvents, type Progress, type Subject } from './transport/event-stream.ts'
import type { Command, CommandEvent, CommandResult, SignalName } from './nouns.ts'
import { type Bytes, chunksIn, type Transport } from './transport/transport.ts'

export interface CommandOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** What to feed; `'open'` to write it later. */
  readonly stdin?: { readonly text: string } | 'open'
  readonly timeoutMs?: number
  /** Processor time of each process of it, in whole seconds rounded up. */
  readonly cpuTimeMs?: number
  readonly maxOutputBytes?: number
  /** Ends the waiting, not the command. */
  readonly signal?: AbortSignal | undefined
}

/** A program and its arguments; or a line for a shell, as text or as `shell`. */
export type CommandLine = readonly string[] | string | { readonly shell: string }

/** One command of a sandbox, running or ended. Iterating it follows its events from the beginning, every time. */
export class RunningCommand implements AsyncIterable<CommandEvent> {
  readonly id: string
  readonly sandbox: string
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport, of: { readonly id: string; readonly sandbox: string }) {
    this.#transport = transport
    this.id = of.id
    this.sandbox = of.sandbox
  }

  [Symbol.asyncIterator](): AsyncGenerator<CommandEvent> {
    return this.events()
  }

  /** What it says from the byte `from` on, until it has ended. */
  events(
    options: { readonly from?: number; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<CommandEvent> {
    return followEvents(this.#transport, subjectOf(this.#params), options)
  }

  stdout(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    return this.#stream('stdout', signal)
  }

  stderr(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    return this.#stream('stderr', signal)
  }

  /** How it stands now. */
  async get(signal?: AbortSignal): Promise<Command> {
    return this.#transport.json('getCommand', { params: this.#params, signal })
  }

  /** What there is of its output now, without waiting. */
  async output(signal?: AbortSignal): Promise<CommandResult> {
    return this.#transport.json('commandOutput', { params: this.#params, signal })
  }

  /** All that it said, when that went over its cap: both streams as they came. Throws when it does not arrive whole. */
  async *fullOutput(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const response = await this.#transport.send('fullCommandOutput', { params: this.#params, signal })
    try {
      if (response.body) yield* chunksIn(response.body)
    } catch (cause) {
      signal?.throwIfAborted()
      throw new AirlockError('server_unreachable', 'The connection broke before the whole output was here.', { cause })
    }
  }

  /** Waits for its end, and answers its whole output. */
  async wait(signal?: AbortSignal): Promise<CommandResult> {
    return collectResult(this.events({ signal }))
  }

  async signal(name: SignalName, signal?: AbortSignal): Promise<void> {
    await this.#transport.send('signalCommand', { params: this.#params, body: { signal: name }, signal })
  }

  /** Writes to its stdin, which must have been opened. */
  async write(bytes: Bytes, signal?: AbortSignal): Promise<void> {
    await this.#transport.send('writeStdin', { params: this.#params, bytes, signal })
  }

  /** Writes what is given, then closes its stdin. */
  async end(bytes?: Bytes, signal?: AbortSignal): Promise<void> {
    const body = bytes === undefined ? {} : { bytes }
    await this.#transport.send('writeStdin', { params: this.#params, query: { end: true }, ...body, signal })
  }

  get #params(): { readonly id: string; readonly command: string } {
    return { id: this.sandbox, command: this.id }
  }

  async *#stream(name: 'stdout' | 'stderr', signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    for await (const event of this.events({ signal }))
      if (event.event === 'output' && event.stream === name) yield outputBytes(event)
  }
}

/**
 * Runs a command over one connection. When that breaks, goes on with the output route where it was.
 * @internal
 */
export async function* streamCommand(
  transport: Transport,
  sandbox: string,
  run: { readonly body: object; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<CommandEvent> {
  const { body, signal } = run
  const headers = { accept: 'text/event-stream' }
  const response = await transport.send('runCommand', { params: { id: sandbox }, body, headers, signal })
  const progress: Progress = { from: 0, subject: undefined, ended: false }
  yield* eventsOf(response, { subjectOf: startedCommand }, { progress, signal })
  if (progress.ended) return
  if (progress.subject === undefined) throw new AirlockError('server_unreachable', 'The connection broke.')
  const subject = subjectOf({ id: sandbox, command: progress.subject })
  yield* followEvents(transport, subject, { from: progress.from, resumes: progress.subject, signal })
}

/** The bytes of an output event of a command or a step, whichever way they came. */
export function outputBytes(event: Extract<CommandEvent, { event: 'output' }>): Uint8Array {
  if (event.base64 === undefined) return new TextEncoder().encode(event.text ?? '')
  return decodeBase64(event.base64)
}

export async function collectResult(events: AsyncIterable<CommandEvent>): Promise<CommandResult> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const text = { stdout: [] as string[], stderr: [] as string[] }
  let command: Command | undefined
  for await (const event of events) {
    if (event.event === 'output')
      text[event.stream].push(decoders[event.stream].decode(outputBytes(event), { stream: true }))
    else if (event.event === 'ended') command = event.command
  }
  if (!command) throw new AirlockError('server_unreachable', 'The stream ended before the command.')
  const whole = (name: 'stdout' | 'stderr'): string => text[name].join('') + decoders[name].decode()
  return { ...command, stdout: whole('stdout'), stderr: whole('stderr') }
}

function subjectOf(params: { readonly id: string; readonly command: string }): Subject<CommandEvent> {
  return { route: 'commandOutput', params, subjectOf: startedCommand }
}

function startedCommand(event: CommandEvent): string | undefined {
  return event.event === 'started' ? event.command.id : undefined
}
