import { AirlockError, ROUTES, type Route, type RouteName, type RouteOutput } from '@airlock/contract'
import {
  parseRequest,
  type AnyRequest,
  type RouteEvent,
  type RouteRequest,
  type Routes,
  type StreamedRoute,
} from '@airlock/mcp'
import type { Caller } from '../app/caller.ts'
import { type Memory, NO_MEMORY } from './admission/body-memory.ts'
import { withAsked } from './asked.ts'
import type { Answer, Call, Handlers } from './call.ts'
import { parseQuery, parseWith } from './parse.ts'
import { checked } from './reply.ts'
import { exactly } from './stream.ts'

interface Options {
  readonly handlers: Handlers
  readonly caller: Caller
  /** Waits for a turn. Throws when the caller may not use the route, or is beyond its rate. */
  readonly admit: (name: RouteName) => Promise<void>
}

/** The routes as a caller over HTTP has them, without HTTP: the same rights, schemas, handlers and checks of the answer. */
export class HandlerRoutes implements Routes {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  async call<N extends RouteName>(name: N, request: RouteRequest<N>, signal?: AbortSignal): Promise<RouteOutput<N>> {
    const answer = await this.#ask(name, parseRequest(request), {
      wants: 'json',
      signal: signal ?? new AbortController().signal,
    })
    if (answer.kind !== 'json' && answer.kind !== 'none') throw mismatch(name)
    const value = answer.kind === 'json' ? checked(name, answer.value) : undefined
    return value as RouteOutput<N>
  }

  async *events<N extends StreamedRoute>(
    name: N,
    request: RouteRequest<N>,
    signal: AbortSignal,
  ): AsyncGenerator<RouteEvent<N>> {
    const answer = await this.#ask(name, parseRequest(request), { wants: 'events', signal })
    if (answer.kind !== 'events') throw mismatch(name)
    yield* answer.events as AsyncIterable<RouteEvent<N>>
  }

  async *bytes(name: 'readFile', request: RouteRequest<'readFile'>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const answer = await this.#ask(name, request, { wants: 'json', signal })
    if (answer.kind !== 'bytes') throw mismatch(name)
    yield* exactly(answer.size, answer.bytes)
  }

  async #ask(
    name: RouteName,
    request: AnyRequest,
    how: { readonly wants: 'json' | 'events'; readonly signal: AbortSignal },
  ): Promise<Answer> {
    const { handlers, caller, admit } = this.#options
    await admit(name)
    const handler = handlers[name] as (call: unknown) => Promise<Answer>
    return handler(parseAsked(name, request, { ...how, caller }))
  }
}

function parseAsked<N extends RouteName>(
  name: N,
  request: AnyRequest,
  rest: { readonly wants: 'json' | 'events'; readonly signal: AbortSignal; readonly caller: Caller },
): Call<N> {
  const route: Route = ROUTES[name]
  const parts = {
    params: route.params && parseWith(route.params, request.params),
    query: parseQuery(route, request.query),
    body: route.body && parseWith(route.body, request.body ?? {}),
  }
  // These bytes are a part of the message, which is in memory already.
  const reserve = async (): Promise<Memory> => NO_MEMORY
  const asked = { route: name, ...parts, bytes: once(request.bytes), reserve, signal: rest.signal }
  const call = { ...rest, ...parts, ...withAsked(rest.caller, asked), lastEventId: undefined }
  return call as unknown as Call<N>
}

async function* once(bytes: Uint8Array | undefined): AsyncGenerator<Buffer> {
  if (bytes) yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function mismatch(name: RouteName): AirlockError {
  return new AirlockError('internal', `The route ${name} answered in another way than asked.`)
}
