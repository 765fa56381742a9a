import { AirlockError, toError } from './errors.ts'
import { chunksOf, Patience } from './transport/event-stream.ts'
import type { AgentMetrics, MetricEvent, MetricResolution, SandboxMetrics, TenantMetrics } from './nouns.ts'
import { parseServerEvents } from './transport/sse.ts'
import type { Transport } from './transport/transport.ts'

export interface MetricsOptions {
  /** How fine the history is: `5s` for a quarter of an hour (the default), `1m` for a day, `15m` for a week. */
  readonly resolution?: MetricResolution | undefined
  /** ISO 8601. Only the history since then. */
  readonly since?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** What sandboxes use: processors, memory, processes, disk, and what they are beyond. */
export class Metrics {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Every living sandbox on the node that is asked, and all of them together. */
  async all(
    options: { readonly agent?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<TenantMetrics> {
    const { signal, agent } = options
    return this.#transport.json('tenantMetrics', { query: { agent }, signal })
  }

  /** The sandboxes of an agent, now and before. */
  async agent(id: string, options: MetricsOptions = {}): Promise<AgentMetrics> {
    const { signal, ...query } = options
    return this.#transport.json('agentMetrics', { params: { id }, query, signal })
  }

  async sandbox(id: string, options: MetricsOptions = {}): Promise<SandboxMetrics> {
    const { signal, ...query } = options
    return this.#transport.json('sandboxMetrics', { params: { id }, query, signal })
  }

  /** What a sandbox is beyond now and its latest sample, then each new one, until it has ended. */
  follow(id: string, options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<MetricEvent> {
    return followMetrics(this.#transport, id, options.signal)
  }
}

/**
 * Ends after `ended`, over any number of connections. Nothing is told twice in a row; what happened while no connection was there is
 * not told, but how things stand after it is.
 * @internal
 */
export async function* followMetrics(
  transport: Transport,
  id: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<MetricEvent> {
  const patience = new Patience(signal)
  const told = new Map<string, string>()
  for (let isFirst = true; ; isFirst = false) {
    const response = await open(transport, { id, signal, isFirst })
    let isHeard = false
    for await (const event of response ? eventsOf(response, signal) : []) {
      isHeard = true
      if (isNews(told, event)) yield event
      if (event.event === 'ended') return
    }
    await patience.pause(isHeard)
  }
}

/** Remembers the last that was told of the samples and of each resource. */
function isNews(told: Map<string, string>, event: MetricEvent): boolean {
  const about =
    event.event === 'alert' ? event.alert.resource : event.event === 'cleared' ? event.resource : event.event
  const said = JSON.stringify(event)
  if (told.get(about) === said) return false
  told.set(about, said)
  return true
}

/** Undefined when a stream that was there already cannot be had again now, but maybe soon. */
async function open(
  transport: Transport,
  of: { readonly id: string; readonly signal: AbortSignal | undefined; readonly isFirst: boolean },
): Promise<Response | undefined> {
  const { id, signal, isFirst } = of
  try {
    return await transport.send('sandboxMetrics', { params: { id }, headers: { accept: 'text/event-stream' }, signal })
  } catch (error) {
    if (!isFirst && error instanceof AirlockError && error.retryable) return undefined
    throw error
  }
}

interface Failed {
  readonly event: 'error'
  readonly error: Parameters<typeof toError>[0]
}

/** Ends quietly where the stream breaks, or the server asks for patience. */
async function* eventsOf(response: Response, signal: AbortSignal | undefined): AsyncGenerator<MetricEvent> {
  for await (const { data } of parseServerEvents(chunksOf(response, signal))) {
    const event = parseEvent(data)
    if (event.event !== 'error') {
      yield event
      continue
    }
    const error = toError(event.error)
    if (error.retryable) return
    throw error
  }
}

/** Trusts the server's shape. */
function parseEvent(data: string): MetricEvent | Failed {
  try {
    return JSON.parse(data) as MetricEvent | Failed
  } catch (cause) {
    throw new AirlockError('internal', 'An event of the stream is not JSON.', { cause })
  }
}
