import type { Command, CommandEvent, CommandResult, SignalName } from '@airlock/contract'
import { AirlockError, toError } from './errors.ts'
import { parseServerEvents } from './sse.ts'
import { pause, type Bytes, type Transport } from './transport.ts'

/** Attempts in a row to go on with a stream that broke; together they outlast a restart of the server. */
const RESUMES = 6
const RESUME_MS = 200

export interface CommandOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** What to feed; `'open'` to write it later. */
  readonly stdin?: { readonly text: string } | 'open'
  readonly timeoutMs?: number
  readonly maxOutputBytes?: number
  /** Ends the waiting, not the command. */
  readonly signal?: AbortSignal | undefined
}

/** A program and its arguments, or a line for a shell. */
export type CommandLine = readonly string[] | { readonly shell: string }

/** One command of a sandbox, running or ended. Iterating it follows its events from the beginning, every time. */
export class RunningCommand implements AsyncIterable<CommandEvent> {
  readonly id: string
  readonly sandbox: string
  readonly #transport: Transport

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
    return followCommand(this.#transport, this.#params, options)
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

/** Runs a command over one connection. When that breaks, goes on with the output route where it was. */
export async function* streamCommand(
  transport: Transport,
  sandbox: string,
  run: { readonly body: object; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<CommandEvent> {
  const { body, signal } = run
  const headers = { accept: 'text/event-stream' }
  const response = await transport.send('runCommand', { params: { id: sandbox }, body, headers, signal })
  const progress: Progress = { from: 0, command: undefined, ended: false }
  yield* eventsOf(response, progress, signal)
  if (progress.ended) return
  if (progress.command === undefined) throw new AirlockError('server_unreachable', 'The connection broke.')
  const params = { id: sandbox, command: progress.command }
  yield* followCommand(transport, params, { from: progress.from, resumes: progress.command, signal })
}

/** The bytes of an output event, whichever way they came. */
export function outputBytes(event: Extract<CommandEvent, { event: 'output' }>): Uint8Array {
  if (event.base64 === undefined) return new TextEncoder().encode(event.text ?? '')
  return Uint8Array.from(atob(event.base64), (char) => char.codePointAt(0) ?? 0)
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

interface Progress {
  from: number
  command: string | undefined
  ended: boolean
}

async function* followCommand(
  transport: Transport,
  params: { readonly id: string; readonly command: string },
  options: { readonly from?: number; readonly resumes?: string; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<CommandEvent> {
  const { signal } = options
  const progress: Progress = { from: options.from ?? 0, command: options.resumes, ended: false }
  for (let idle = 0; idle < RESUMES; idle++) {
    if (idle > 0) await pause(RESUME_MS * 2 ** (idle - 1), signal)
    const before = progress.from
    const response = await openOutput(transport, params, { progress, signal })
    if (response) yield* eventsOf(response, progress, signal)
    if (progress.ended) return
    if (progress.from > before) idle = 0
  }
  throw new AirlockError('server_unreachable', 'The stream broke and could not be resumed.')
}

/** Undefined when a stream that was already there could not be resumed now, but maybe soon. */
async function openOutput(
  transport: Transport,
  params: { readonly id: string; readonly command: string },
  options: { readonly progress: Progress; readonly signal: AbortSignal | undefined },
): Promise<Response | undefined> {
  const { progress, signal } = options
  const headers = { accept: 'text/event-stream', 'last-event-id': String(progress.from) }
  try {
    return await transport.send('commandOutput', { params, headers, signal })
  } catch (error) {
    if (progress.command !== undefined && error instanceof AirlockError && error.retryable) return undefined
    throw error
  }
}

/** Ends quietly where the connection breaks: `progress` says whether that was the end of the command. */
async function* eventsOf(
  response: Response,
  progress: Progress,
  signal: AbortSignal | undefined,
): AsyncGenerator<CommandEvent> {
  for await (const { id, data } of parseServerEvents(chunksOf(response, signal))) {
    const event = parseEvent(data)
    if (event.event === 'error' && event.error.code === 'not_ready') return
    if (event.event === 'error') throw toError(event.error)
    if (event.event === 'started' && progress.command !== undefined) continue
    advance(progress, event, id)
    yield event
  }
}

function advance(progress: Progress, event: CommandEvent, id: string | undefined): void {
  if (event.event === 'started') progress.command = event.command.id
  else if (event.event === 'output') progress.from = Number(id ?? event.offset)
  else if (event.event === 'ended') progress.ended = true
}

async function* chunksOf(response: Response, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  try {
    if (response.body) yield* response.body
  } catch {
    // The connection broke; whoever reads knows by what is missing.
    signal?.throwIfAborted()
  }
}

function parseEvent(data: string): CommandEvent {
  try {
    return JSON.parse(data) as CommandEvent
  } catch (cause) {
    throw new AirlockError('internal', 'An event of the stream is not JSON.', { cause })
  }
}
