import { AirlockError, toError } from './errors.ts'
import type { Command, CommandEvent, CommandResult, SignalName } from './nouns.ts'
import { parseServerEvents } from './sse.ts'
import { pause, type Bytes, type Transport } from './transport.ts'

/** How long a stream that broke is tried again in vain: longer than a restart of the server on a busy machine. */
const RESUME_LIMIT_MS = 60_000
/** A connection that lasted this long was alive even if the command said nothing: comments come every 15 seconds. */
const ALIVE_MS = 20_000
const RESUME_MS = { first: 200, most: 2_000 }

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
  return new Uint8Array(Buffer.from(event.base64, 'base64'))
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
  let vainSince = Date.now()
  let pauseMs = RESUME_MS.first
  for (;;) {
    const { from: before } = progress
    const response = await openOutput(transport, params, { progress, signal })
    const opened = Date.now()
    const how = response ? yield* eventsOf(response, progress, signal) : 'refused'
    if (progress.ended) return
    const wasAlive = progress.from > before || (how === 'broken' && Date.now() - opened > ALIVE_MS)
    if (wasAlive) vainSince = Date.now()
    pauseMs = wasAlive ? RESUME_MS.first : Math.min(pauseMs * 2, RESUME_MS.most)
    if (Date.now() - vainSince > RESUME_LIMIT_MS)
      throw new AirlockError('server_unreachable', 'The stream broke and could not be resumed.')
    await pause(pauseMs, signal)
  }
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

/** Ends quietly where the stream breaks, or the server asks for patience: `progress` says whether the command ended. */
async function* eventsOf(
  response: Response,
  progress: Progress,
  signal: AbortSignal | undefined,
): AsyncGenerator<CommandEvent, 'broken' | 'refused'> {
  for await (const { id, data } of parseServerEvents(chunksOf(response, signal))) {
    const event = parseEvent(data)
    if (event.event === 'error') {
      const error = toError(event.error)
      if (error.retryable) return 'refused'
      throw error
    }
    if (event.event === 'started' && progress.command !== undefined) continue
    advance(progress, event, id)
    yield event
  }
  return 'broken'
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
