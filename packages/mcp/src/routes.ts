import type { ROUTES, RouteName, RouteOutput } from '@airlock/contract'
import type { z } from 'zod'

type Table = typeof ROUTES
type Part<N extends RouteName, K extends 'params' | 'query' | 'body'> = Table[N] extends {
  readonly [P in K]: infer S extends z.ZodType
}
  ? { readonly [P in K]: z.input<S> }
  : unknown

/** What a caller of a route gives, each part only where the route has it. */
export type RouteRequest<N extends RouteName> = Part<N, 'params'> &
  Part<N, 'query'> &
  Part<N, 'body'> &
  (Table[N] extends { readonly sends: 'bytes' } ? { readonly bytes: Uint8Array } : unknown)

/** The routes whose events a tool follows. */
export type StreamedRoute = 'runCommand' | 'runStep'
export type RouteEvent<N extends StreamedRoute> = Table[N] extends { readonly events: infer E extends z.ZodType }
  ? z.output<E>
  : never

/** What an adapter sees of a request: the types above are for whoever asks. */
export interface AnyRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  readonly bytes?: Uint8Array
}

/**
 * The routes of the server, as one caller reaches them: with his key, its rights, and evidence of what he does. Every tool
 * works through this and nothing else. Errors are `AirlockError`; one in a stream is thrown by the stream.
 */
export interface Routes {
  call<N extends RouteName>(name: N, request: RouteRequest<N>, signal?: AbortSignal): Promise<RouteOutput<N>>
  /** Aborting ends the listening; what was started goes on. */
  events<N extends StreamedRoute>(name: N, request: RouteRequest<N>, signal: AbortSignal): AsyncIterable<RouteEvent<N>>
  bytes(name: 'readFile', request: RouteRequest<'readFile'>, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/** For an adapter, which knows of a route only its name: what was asked is of that route, as the types above see to. */
export function parseRequest(request: unknown): AnyRequest {
  return request as AnyRequest
}
