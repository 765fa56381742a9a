import { AirlockError, describeIssues, ROUTES, type Route, type RouteName } from '@airlock/contract'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { type Memory, NO_MEMORY } from './admission/body-memory.ts'
import { withAsked } from './asked.ts'
import { jsonBytes, readBytes, readJson, throwOnContent } from './body.ts'
import type { Call } from './call.ts'

const PATH_FIELDS: ReadonlySet<PropertyKey> = new Set(['path', 'from', 'to', 'cwd'])

/** A request as the route's schemas say, or `invalid_request` with the field's name in it. The body is read last. */
export async function parseCall<N extends RouteName>(
  name: N,
  request: FastifyRequest,
  signal: AbortSignal,
): Promise<Call<N>> {
  const route: Route = ROUTES[name]
  const params = route.params && parseWith(route.params, request.params)
  const query = parseQuery(route, request.query)
  const body = route.body && parseWith(route.body, await readJson(request, jsonBytes(route)))
  if (!route.body && route.sends !== 'bytes') await throwOnContent(request)
  const reserve = async (maxBytes: number): Promise<Memory> => request.admitted?.reserve(maxBytes) ?? NO_MEMORY
  const asked = { route: name, params, query, body, bytes: readBytes(request.raw), signal, reserve }
  const call = {
    ...withAsked(request.caller, asked),
    params,
    query,
    body,
    contentLength: route.sends === 'bytes' ? parseLength(request.headers['content-length']) : undefined,
    requestId: request.id,
    wants: wanted(route, request.headers.accept),
    lastEventId: parseEventId(request.headers['last-event-id']),
    signal,
  }
  return call as Call<N>
}

export function parseWith(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AirlockError(isBadPath(parsed.error) ? 'invalid_path' : 'invalid_request', describeIssues(parsed.error))
}

export function parseQuery(route: Route, query: unknown): unknown {
  if (route.query) return parseWith(route.query, query)
  if (Object.keys(query ?? {}).length > 0) throw new AirlockError('invalid_request', 'This route takes no query.')
  return undefined
}

/** Right type, wrong content: the hint about paths helps more than the one about fields. */
function isBadPath(error: z.ZodError): boolean {
  return error.issues.every((issue) => issue.code === 'custom' && PATH_FIELDS.has(issue.path.at(-1) ?? ''))
}

function wanted(route: Route, accept = ''): 'json' | 'events' | 'csv' {
  if (route.answers === 'json-or-events' && accept.toLowerCase().includes('text/event-stream')) return 'events'
  return route.answers === 'json-or-csv' && accept.toLowerCase().includes('text/csv') ? 'csv' : 'json'
}

function parseLength(header: string | undefined): number | undefined {
  const length = Number(header)
  return header !== undefined && Number.isSafeInteger(length) && length >= 0 ? length : undefined
}

function parseEventId(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined || header === '') return undefined
  const id = Number(header)
  if (!/^\d+$/.test(String(header)) || !Number.isSafeInteger(id))
    throw new AirlockError('invalid_request', 'Last-Event-ID: must be the id of an event of ours.')
  return id
}
