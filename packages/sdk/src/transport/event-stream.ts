import { AirlockError, toError } from '../errors.ts'
import { parseServerEvents } from './sse.ts'
import { chunksIn, pause, type Transport } from './transport.ts'

/** How long a stream that broke is tried again in vain: longer than a restart of the server on a busy machine. */
const RESUME_LIMIT_MS = 60_000
/** A connection that lasted this long was alive even if nothing was said on it: comments come every 15 seconds. */
const ALIVE_MS = 20_000
const RESUME_MS = { first: 200, most: 2_000 }

/** What the events of commands, steps and jobs have in common. */
export interface StreamEvent {
  readonly event: string
  readonly offset?: number | undefined
}

/** How far a stream was read: what it is about, its last byte that was passed on, whether its end was. */
export interface Progress {
  from: number
  subject: string | undefined
  ended: boolean
}

export interface Subject<E extends StreamEvent> {
  readonly route: 'commandOutput' | 'stepOutput' | 'jobLogs' | 'runEvents'
  readonly params: Readonly<Record<string, string>>
  /** The id of what a `started` event is about. */
  readonly subjectOf: (event: E) => string | undefined
  /** The event that is the last one, where it is not `ended`. */
  readonly last?: string
  /** An error that time alone cannot help, retryable or not. */
  readonly isFinal?: (error: AirlockError) => boolean
}

type Reading<E extends StreamEvent> = Pick<Subject<E>, 'subjectOf' | 'isFinal' | 'last'>

/** Waits longer each time, and gives up after a minute in which nothing was achieved. */
export class Patience {
  readonly #signal: AbortSignal | undefined
  #vainSince = performance.now()
  #pauseMs: number = RESUME_MS.first

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
  }

  async pause(achieved = false): Promise<void> {
    if (achieved) this.#vainSince = performance.now()
    this.#pauseMs = achieved ? RESUME_MS.first : Math.min(this.#pauseMs * 2, RESUME_MS.most)
    if (performance.now() - this.#vainSince > RESUME_LIMIT_MS)
      throw new AirlockError('server_unreachable', 'The stream broke and could not be resumed.')
    await pause(this.#pauseMs, this.#signal)
  }
}

/**
 * The events of something from a byte on, until it has ended, over any number of connections. Where `resumes` names it,
 * its beginning was passed on already.
 */
export async function* followEvents<E extends StreamEvent>(
  transport: Transport,
  subject: Subject<E>,
  options: { readonly from?: number; readonly resumes?: string; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<E> {
  const { signal } = options
  const progress: Progress = { from: options.from ?? 0, subject: options.resumes, ended: false }
  const patience = new Patience(signal)
  for (;;) {
    const { from: before } = progress
    const response = await openOutput(transport, subject, { progress, signal })
    const opened = performance.now()
    const how = response ? yield* eventsOf(response, subject, { progress, signal }) : 'refused'
    if (progress.ended) return
    await patience.pause(progress.from > before || (how === 'broken' && performance.now() - opened > ALIVE_MS))
  }
}

/** Ends quietly where the stream breaks, or the server asks for patience: `progress` says whether the end was seen. */
export async function* eventsOf<E extends StreamEvent>(
  response: Response,
  subject: Reading<E>,
  { progress, signal }: { readonly progress: Progress; readonly signal: AbortSignal | undefined },
): AsyncGenerator<E, 'broken' | 'refused'> {
  for await (const { id, data } of parseServerEvents(chunksOf(response, signal))) {
    const event = parseEvent(data, subject)
    if ('error' in event) {
      throwUnlessPassing(toError(event.error), subject)
      return 'refused'
    }
    if (event.event === 'started' && progress.subject !== undefined) continue
    if (event.event === 'started') progress.subject = subject.subjectOf(event)
    else if (event.event === (subject.last ?? 'ended')) progress.ended = true
    else if (event.offset !== undefined) progress.from = Number(id ?? event.offset)
    yield event
  }
  return 'broken'
}

/** An error that time may help is no end of the stream. */
function throwUnlessPassing<E extends StreamEvent>(error: AirlockError, { isFinal }: Reading<E>): void {
  if (!error.retryable || isFinal?.(error) === true) throw error
}

/** Undefined when a stream that was already there could not be resumed now, but maybe soon. */
async function openOutput<E extends StreamEvent>(
  transport: Transport,
  subject: Subject<E>,
  options: { readonly progress: Progress; readonly signal: AbortSignal | undefined },
): Promise<Response | undefined> {
  const { progress, signal } = options
  const headers = { accept: 'text/event-stream', 'last-event-id': String(progress.from) }
  try {
    return await transport.send(subject.route, { params: subject.params, headers, signal })
  } catch (error) {
    if (progress.subject !== undefined && error instanceof AirlockError && error.retryable) return undefined
    throw error
  }
}

/** The body of an answer; ends where the connection breaks, for whoever reads knows by what is missing. */
export async function* chunksOf(response: Response, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  try {
    if (response.body) yield* chunksIn(response.body)
  } catch {
    // The connection broke.
    signal?.throwIfAborted()
  }
}

interface Failed {
  readonly event: 'error'
  readonly error: Parameters<typeof toError>[0]
}

/** Trusts the server's shape: it checks every event against the contract before it sends it. */
function parseEvent<E extends StreamEvent>(data: string, _of: Reading<E>): E | Failed {
  try {
    return JSON.parse(data) as E | Failed
  } catch (cause) {
    throw new AirlockError('internal', 'An event of the stream is not JSON.', { cause })
  }
}
