import type {
  ApprovalEvent,
  CommandEvent,
  JobEvent,
  RunEvent,
  MetricEvent,
  ROUTES,
  RouteName,
  StepEvent,
  StreamedEvent,
  TemplateEvent,
} from '@airlock/contract'
import type { z } from 'zod'
import type { Caller } from '../app/caller.ts'

type Table = typeof ROUTES
type OutputOf<T> = T extends z.ZodType ? z.output<T> : undefined

/** One request, parsed and authenticated: all that a handler gets to see of HTTP. */
export interface Call<N extends RouteName> {
  /** Null on public routes only. */
  readonly caller: Table[N]['roles'] extends 'public' ? null : Caller
  readonly params: Table[N] extends { params: infer P } ? OutputOf<P> : undefined
  readonly query: Table[N] extends { query: infer Q } ? OutputOf<Q> : undefined
  readonly body: Table[N] extends { body: infer B } ? OutputOf<B> : undefined
  /** The body of an upload, read as fast as it is consumed. Throws `body_too_large` past the bound. */
  readonly bytes: AsyncIterable<Buffer>
  /** Of an upload, as the client says; undefined when it does not. */
  readonly contentLength: number | undefined
  readonly requestId: string
  readonly wants: 'json' | 'events' | 'csv'
  /** Where a client that lost its event stream wants to go on. */
  readonly lastEventId: number | undefined
  /** Aborts when the client is gone or the server closes. */
  readonly signal: AbortSignal
}

/** What is sent as server-sent events. */
export type StreamEvent =
  | ApprovalEvent
  | CommandEvent
  | JobEvent
  | RunEvent
  | MetricEvent
  | StepEvent
  | StreamedEvent
  | TemplateEvent

export type Answer =
  | { readonly kind: 'json'; readonly value: unknown }
  | {
      readonly kind: 'events'
      readonly events: AsyncIterable<StreamEvent>
      /** Who takes nothing for a while is told by a last event where to go on. */
      readonly slow?: { readonly onCut: () => void; readonly last: () => StreamEvent }
    }
  | {
      readonly kind: 'bytes'
      /** Undefined where it is known at the end alone. */
      readonly size: number | undefined
      readonly bytes: AsyncIterable<Buffer>
      readonly type?: string
    }
  | {
      readonly kind: 'file'
      readonly name: string
      readonly size: number
      /** Its ETag. */
      readonly sha256: string
      readonly type: string
      /** From a byte to another, both included. */
      readonly open: (part: { readonly from: number; readonly to: number }) => Promise<AsyncIterable<Buffer>>
    }
  /** Server-sent events that are written out already. */
  | { readonly kind: 'frames'; readonly frames: AsyncIterable<string> }
  | { readonly kind: 'lines'; readonly lines: AsyncIterable<string> }
  | { readonly kind: 'text'; readonly type: string; readonly text: string; readonly policy?: string }
  | { readonly kind: 'none' }

type Kinds = {
  json: 'json'
  'json-or-events': 'json' | 'events'
  'json-or-csv': 'json' | 'text'
  'json-or-frames': 'json' | 'frames'
  bytes: 'bytes' | 'file'
  lines: 'lines'
  text: 'text'
  none: 'none'
}
/** The answers that the table allows a route. */
type AnswerTo<N extends RouteName> = Extract<Answer, { kind: Kinds[Table[N]['answers']] }>

export type Handler<N extends RouteName> = (call: Call<N>) => Promise<AnswerTo<N>>
export type Handlers = { readonly [N in RouteName]: Handler<N> }

/** The value is checked against the response schema of the route before it leaves. */
export function json(value: unknown): { readonly kind: 'json'; readonly value: unknown } {
  return { kind: 'json', value }
}

export const NOTHING = { kind: 'none' } as const
