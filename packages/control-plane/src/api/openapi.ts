import {
  BOUNDS,
  COMMON_ERRORS,
  isReducing,
  ERRORS,
  GUARDED_ERRORS,
  isGoverned,
  ROUTES,
  type ErrorCode,
  type Route,
} from '@airlock/contract'
import { z } from 'zod'
import { documentSchemas, type DocumentSchemas } from './openapi-schemas.ts'
import { tagOf, TAGS } from './tags.ts'

/** What the server calls itself, in every interface. */
export const VERSION = '0.1.0'

type Json = Readonly<Record<string, unknown>>

/** The route table as OpenAPI 3.1. Nothing is written by hand: what is not in the table is not in the document. */
export function openapiDocument(): Json {
  const paths: Record<string, Record<string, Json>> = {}
  const schemas = documentSchemas(errorBody)
  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    const methods = (paths[route.path] ??= {})
    methods[route.method.toLowerCase()] = operation(name, route, schemas)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Airlock',
      version: VERSION,
      description: 'Runs code that nobody trusts, in sandboxes with no network device.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: '/', description: 'The server that answered with this document.' },
      { url: 'http://127.0.0.1:7070', description: 'A server on this machine.' },
    ],
    tags: TAGS,
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', bearerFormat: 'al_…' } },
      schemas: schemas.components,
    },
  }
}

/** Every error a route may answer: its own, those of all routes, and those of Guardian where it is asked. */
export function errorsOf(route: Route): readonly ErrorCode[] {
  const keyed = route.roles === 'public' ? COMMON_ERRORS.filter((code) => !NEEDS_KEY.has(code)) : COMMON_ERRORS
  const common = isReducing(route) ? keyed.filter((code) => code !== 'too_many_requests') : keyed
  // Whatever waits for its record may find the chain of its tenant broken, or full.
  const recorded: readonly ErrorCode[] = route.errors.includes('evidence_unavailable')
    ? ['evidence_broken', 'evidence_full']
    : []
  return [...new Set([...common, ...(isAsked(route) ? GUARDED_ERRORS : []), ...route.errors, ...recorded])]
}

function isAsked({ effect }: Route): boolean {
  return effect !== undefined && isGoverned(effect)
}

const NEEDS_KEY: ReadonlySet<ErrorCode> = new Set(['unauthenticated', 'forbidden', 'too_many_requests'])

const errorBody = z.strictObject({
  error: z.strictObject({
    code: z.string(),
    message: z.string(),
    hint: z.string(),
    retryable: z.boolean(),
    requestId: z.string(),
    approval: z.string().optional().describe('What a person must approve, or has rejected.'),
  }),
})

function operation(name: string, route: Route, schemas: DocumentSchemas): Json {
  return {
    operationId: name,
    tags: [tagOf(route)],
    summary: route.summary,
    ...(route.roles === 'public' ? { security: [] } : { 'x-airlock-roles': route.roles }),
    ...(route.effect === undefined ? {} : { 'x-airlock-effect': route.effect }),
    'x-airlock-repeats': route.repeats,
    parameters: [...parameters('path', route.params), ...parameters('query', route.query), ...waitParameter(route)],
    ...requestBody(route, schemas),
    responses: { ...success(route, schemas), ...failures(route) },
  }
}

function parameters(place: 'path' | 'query', schema: z.ZodObject | undefined): readonly Json[] {
  if (!schema) return []
  return Object.entries<z.ZodType>(schema.shape).map(([name, field]) => ({
    name,
    in: place,
    required: place === 'path' || !field.safeParse(undefined).success,
    ...described(name, field),
  }))
}

function waitParameter(route: Route): readonly Json[] {
  if (!isAsked(route)) return []
  const description = 'Seconds to wait when a person must approve it first; at once answered without it.'
  const schema = { type: 'integer', minimum: 0, maximum: BOUNDS.approvalWaitMs / 1000 }
  return [{ name: 'airlock-wait-approval', in: 'header', required: false, description, schema }]
}

function requestBody(route: Route, schemas: DocumentSchemas): Json {
  if (route.sends === 'bytes') return { requestBody: { content: { 'application/octet-stream': { schema: BYTES } } } }
  if (!route.body) return {}
  const optional = route.body.safeParse({}).success
  return {
    requestBody: {
      required: !optional,
      content: { 'application/json': { schema: schemas.refer(route.body, 'input') } },
    },
  }
}

/** Without a type, as OpenAPI 3.1 describes raw bytes. */
const BYTES = { description: 'Raw bytes.' }

function success(route: Route, schemas: DocumentSchemas): Json {
  if (route.answers === 'none') return { 204: { description: 'Done.' } }
  const json = { 'application/json': { schema: route.response ? schemas.refer(route.response, 'output') : {} } }
  const content = {
    json,
    'json-or-events': {
      ...json,
      'text/event-stream': { schema: route.events ? schemas.refer(route.events, 'output') : {} },
    },
    'json-or-frames': { ...json, 'text/event-stream': { schema: { type: 'string' } } },
    'json-or-csv': { ...json, 'text/csv': { schema: { type: 'string' } } },
    bytes: { 'application/octet-stream': { schema: BYTES } },
    lines: { 'application/x-ndjson': { schema: {} } },
    text: { 'text/plain': { schema: { type: 'string' } } },
  }[route.answers]
  return { [route.status ?? 200]: { description: route.summary, content } }
}

function failures(route: Route): Json {
  const byStatus = Object.groupBy(errorsOf(route), (code) => ERRORS[code].status)
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, codes]) => [status, { description: codes?.join(', '), content }]),
  )
}

/** Parameters with one meaning in all routes. */
const PARAMETERS: Readonly<Record<string, string>> = {
  id: 'Id of the subject of the route.',
  agent: 'Id of an agent.',
  command: 'Id of a command of the sandbox.',
  cursor: 'nextCursor of the page before.',
  expectedGeneration: 'Nothing happens when the agent has another generation by now.',
  expectedVersion: 'Nothing happens when the policy has another version by now.',
  grant: 'Id of a grant of the agent.',
  limit: 'At most so many items.',
  path: 'Absolute, or relative to /workspace; resolved inside the sandbox.',
  recursive: 'With all that is in the directory.',
  sandbox: 'Id of a sandbox.',
  since: 'ISO 8601. Only what was recorded since then.',
  step: 'Id of a step of the session.',
}

function described(name: string, field: z.ZodType): Json {
  const { $schema: _dialect, description = PARAMETERS[name], ...schema } = z.toJSONSchema(field, { io: 'input' })
  return description === undefined ? { schema } : { description, schema }
}
