import type { RouteName, RouteOutput } from '@airlock/contract'
import { parseRequest, type RouteEvent, type RouteRequest, type Routes, type StreamedRoute } from '@airlock/mcp'
import type { StepOptions } from '@airlock/sdk'
import { streamCommand, streamStep, type Transport } from '@airlock/sdk/internal'

/** The routes of a server, by the SDK: with its key, its retries, and streams that go on over a restart of the server. */
export class SdkRoutes implements Routes {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  async call<N extends RouteName>(name: N, request: RouteRequest<N>, signal?: AbortSignal): Promise<RouteOutput<N>> {
    return this.#transport.json(name, { ...parseRequest(request), signal })
  }

  events<N extends StreamedRoute>(name: N, request: RouteRequest<N>, signal: AbortSignal): AsyncIterable<RouteEvent<N>>
  events(
    name: StreamedRoute,
    request: RouteRequest<StreamedRoute>,
    signal: AbortSignal,
  ): AsyncIterable<RouteEvent<StreamedRoute>> {
    const { params, body } = request
    if (name === 'runCommand') return streamCommand(this.#transport, params.id, { body, signal })
    const { code, ...options } = parseStep(body)
    return streamStep(this.#transport, params.id, { code, options: { ...options, signal } })
  }

  async *bytes(name: 'readFile', request: RouteRequest<'readFile'>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const response = await this.#transport.send(name, { ...request, signal })
    if (response.body) yield* response.body
  }
}

/** The body of a step; what is undefined in it is left out, as on the wire. */
function parseStep(body: object): { readonly code: string } & StepOptions {
  return JSON.parse(JSON.stringify(body)) as { code: string } & StepOptions
}
