import { AirlockError, toError } from './errors.ts'
import { chunksOf, Patience } from './transport/event-stream.ts'
import type { AuditEvent, EventPage, StreamedEvent } from './nouns.ts'
import { parseServerEvents } from './transport/sse.ts'
import type { Transport } from './transport/transport.ts'

export interface EventOptions {
  readonly agent?: string | undefined
  readonly sandbox?: string | undefined
  /** Names or patterns, like `command.run` or `sandbox.*`. */
  readonly point?: string | readonly string[] | undefined
  readonly status?: string | readonly string[] | undefined
  /** ISO 8601. Only what was recorded since then. */
  readonly since?: string | undefined
  /** Only records after this one. Without it and `since`: from now on. */
  readonly after?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface FollowOptions extends EventOptions {
  /** Told how far it is: each event that was passed on, and what does not match before the next one. */
  readonly onProgress?: ((seq: number) => void) | undefined
  /** Told when retention dropped records up to this one before they could be read. */
  readonly onGap?: ((seq: number) => void) | undefined
}

/**
 * What happens, each record once and in order, over any number of connections and restarts of the server. Never ends
 * by itself; throws when the server says no, or does not answer for a minute.
 * @internal
 */
export async function* followRecords(transport: Transport, options: FollowOptions): AsyncGenerator<AuditEvent> {
  const { signal } = options
  const reading = new Reading(options)
  const patience = new Patience(signal)
  for (;;) {
    reading.isHeard = false
    const response = await open(transport, options, reading.seq)
    if (response) yield* reading.records(chunksOf(response, signal))
    if (reading.isCut) continue
    await patience.pause(reading.isHeard)
  }
}

/** @internal */
export async function pageOfEvents(
  transport: Transport,
  options: EventOptions & { readonly limit?: number | undefined },
): Promise<EventPage> {
  const { signal, ...asked } = options
  return transport.json('events', { query: toQuery(asked), signal })
}

/** How far a stream was read. */
class Reading {
  readonly #options: FollowOptions
  seq: number | undefined
  isCut = false
  /** The server said something on this connection. */
  isHeard = false

  constructor(options: FollowOptions) {
    this.#options = options
    this.seq = options.after
  }

  /** Ends quietly where the stream breaks, or the server asks for patience. */
  async *records(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<AuditEvent> {
    this.isCut = false
    for await (const { data } of parseServerEvents(chunks)) {
      const event = parseEvent(data)
      if (event.event === 'error') return throwUnlessRetryable(event)
      this.isHeard = true
      this.seq = event.seq
      this.isCut = event.event === 'cut'
      if (event.event === 'gap') this.#options.onGap?.(event.seq)
      if (event.event === 'record') yield event.record
      this.#options.onProgress?.(event.seq)
    }
  }
}

/** Undefined when a stream that was there already cannot be resumed now, but maybe soon. */
async function open(
  transport: Transport,
  options: FollowOptions,
  seq: number | undefined,
): Promise<Response | undefined> {
  const { signal, onGap: _onGap, onProgress: _onProgress, ...asked } = options
  const resumed = seq === undefined ? {} : { 'last-event-id': String(seq) }
  try {
    return await transport.send('events', {
      query: toQuery(asked),
      headers: { accept: 'text/event-stream', ...resumed },
      signal,
    })
  } catch (error) {
    if (seq !== options.after && error instanceof AirlockError && error.retryable) return undefined
    throw error
  }
}

function toQuery(asked: object): Readonly<Record<string, string | number | undefined>> {
  const pairs = Object.entries(asked) as [string, string | number | readonly string[] | undefined][]
  return Object.fromEntries(pairs.map(([name, value]) => [name, typeof value === 'object' ? value.join(',') : value]))
}

interface Failed {
  readonly event: 'error'
  readonly error: Parameters<typeof toError>[0]
}

function throwUnlessRetryable({ error: told }: Failed): void {
  const error = toError(told)
  if (!error.retryable) throw error
}

/** Trusts the server's shape. */
function parseEvent(data: string): StreamedEvent | Failed {
  try {
    return JSON.parse(data) as StreamedEvent | Failed
  } catch (cause) {
    throw new AirlockError('internal', 'An event of the stream is not JSON.', { cause })
  }
}
