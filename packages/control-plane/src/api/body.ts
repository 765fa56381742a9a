import { AirlockError, BOUNDS, isReducing, type Route, type RouteName } from '@airlock/contract'
import { decodeText, parseJson, tooLarge } from '@airlock/wire'
import type { FastifyRequest } from 'fastify'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** An upload may take hours, but not pause for longer than this. */
const UPLOAD_IDLE_MS = 120_000
/** `{}`, with room for blanks. */
const EMPTY_BYTES = 1024
/** Bodies that reduce are read beyond every share of memory, so they are small. */
const REDUCING_BYTES = 16 * 1024

/** Routes whose bodies may take hours, but not pause. */
const UPLOADS: ReadonlySet<string | null> = new Set<RouteName>([
  'writeFile',
  'writeArchive',
  'importTemplate',
  'uploadArtifact',
])

type BodyRequest = Pick<FastifyRequest, 'headers' | 'admitted'>

/** Looks at headers only, so that a body that will be refused is never read. */
export function throwOnBody(route: Route, headers: IncomingHttpHeaders): void {
  if (!hasBody(headers) || route.sends === 'bytes') return throwOnLength(headers, BOUNDS.uploadBytes)
  if (route.roles === 'public') throw noBody()
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json')
    throw new AirlockError('unsupported_media_type', 'The body must be application/json.')
  if (headers['content-encoding'] !== undefined)
    throw new AirlockError('unsupported_media_type', 'A compressed body is not understood.')
  throwOnLength(headers, jsonBytes(route))
}

/** The most that the JSON of a route may be. */
export function jsonBytes(route: Route): number {
  if (!route.body) return EMPTY_BYTES
  return isReducing(route) ? REDUCING_BYTES : BOUNDS.jsonBodyBytes
}

/** The parsed body, `{}` when there is none. Reads at most the bound. */
export async function readJson(request: BodyRequest, maxBytes: number): Promise<unknown> {
  return hasBody(request.headers) ? parseBody(await readWhole(request, maxBytes)) : {}
}

/** Reads the body of a route that takes none: `{}` says as much as nothing, and many clients always send it. */
export async function throwOnContent(request: BodyRequest): Promise<void> {
  if (!hasBody(request.headers)) return
  const value = parseBody(await readWhole(request, EMPTY_BYTES))
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length > 0)
    throw noBody()
}

/** The body as text, for whoever parses it by rules of its own. Reads at most `maxBytes`. */
export async function readText(request: BodyRequest, maxBytes: number): Promise<string> {
  throwOnLength(request.headers, maxBytes)
  const text = (await readWhole(request, maxBytes)).toString('utf8')
  if (PROTO.test(text)) throwOnProto(parseJson(text))
  return text
}

/** The body of an upload with backpressure. Stopping early leaves the connection whole, for the error to be answered. */
export function readBytes(request: IncomingMessage): AsyncIterable<Buffer> {
  return boundedBytes(request, BOUNDS.uploadBytes)
}

export function isUpload(name: FastifyRequest['routeName']): boolean {
  return UPLOADS.has(name)
}

/** Cuts off a client that stopped sending. Not for stdin: whoever types may think. */
export function cutWhenIdle(request: IncomingMessage, idleMs = UPLOAD_IDLE_MS): void {
  request.setTimeout(idleMs, () => {
    // What is here whole may have to wait for other things.
    if (!request.complete) request.destroy(new AirlockError('timeout', 'The upload stopped.'))
  })
}

export function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Fails closed: a body is read only for an admitted request. */
async function readWhole({ admitted }: BodyRequest, maxBytes: number): Promise<Buffer> {
  if (!admitted) throw noBody()
  return admitted.read(maxBytes)
}

function throwOnLength(headers: IncomingHttpHeaders, limit: number): void {
  if (Number(headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
}

async function* boundedBytes(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) throw tooLarge(limit)
    yield chunk
  }
}

/** What comes from outside is judged once more than what our own processes say: by its keys. */
function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return {}
  const text = decodeText(bytes)
  const value = parseJson(text)
  if (PROTO.test(text)) throwOnProto(value)
  return value
}

/** Whether some key may be `__proto__`, also in escapes: looking at every key of every body would cost more than reading it. */
const PROTO = /__proto__|\\u00(?:5f|70|72|6f|74)/i

/** No object keeps such a key, so a label or a variable of that name would be gone without a word. */
function throwOnProto(value: unknown): void {
  const left: unknown[] = [value]
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (typeof one !== 'object' || one === null) continue
    if (Object.hasOwn(one, '__proto__'))
      throw new AirlockError('invalid_request', 'No field, label or variable may be named "__proto__".')
    for (const inner of Object.values(one)) left.push(inner)
  }
}

function noBody(): AirlockError {
  return new AirlockError('invalid_request', 'This route takes no body.', { hint: 'Send none, or {}.' })
}
