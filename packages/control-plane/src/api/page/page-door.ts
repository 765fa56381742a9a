import type { AuditSink } from '@airlock/audit'
import { AirlockError, describeIssues, type Principal } from '@airlock/contract'
import { decodeText, parseJson, readBounded } from '@airlock/wire'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingHttpHeaders } from 'node:http'
import { z } from 'zod'
import type { Authenticator, Purpose } from '../../identity/authenticate.ts'
import { type PageSessions, SESSION_MS } from '../../identity/page-sessions.ts'
import { throwOnForeignOrigin } from '../host-check.ts'
import { networkOf } from '../admission/open-connections.ts'
import { Buckets } from '../admission/request-rates.ts'
import type { PageFile, PageFiles } from './page-files.ts'

/** What a server needs to show its page. */
export interface PageOptions {
  readonly files: PageFiles
  readonly sessions: PageSessions
  /** Of this server alone: cookies of a host are sent to all of its ports. */
  readonly cookie: string
}

export interface PageHost extends PageOptions {
  readonly authenticator: Authenticator
  readonly audit: AuditSink
  /** Browsers reach the server by https. */
  readonly isSecure: boolean
}

const BODY_BYTES = 4 * 1024
/** Of one address; good keys and bad ones count alike. */
const ATTEMPTS = { burst: 10, perSecond: 0.5 }
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const signInBody = z.union([
  z.strictObject({ key: z.string().min(1).max(256) }),
  z.strictObject({ link: z.string().min(1).max(256) }),
])

/** `/` and its files, and the sign-in of browsers: an API key, or a link, for a cookie with the rights of that key. */
export class PageDoor {
  readonly #host: PageHost
  readonly #attempts = new Buckets(ATTEMPTS)

  constructor(host: PageHost) {
    this.#host = host
  }

  register(app: FastifyInstance): void {
    const { files } = this.#host
    const onRequest = async (request: FastifyRequest): Promise<void> => {
      request.routeName = 'page'
    }
    for (const [url, file] of files)
      app.route({ method: 'GET', url, onRequest, handler: async (request, reply) => sendFile(file, request, reply) })
    const onPost = async (request: FastifyRequest): Promise<void> => {
      request.routeName = 'page'
      throwUnlessOwnPage(request.headers)
    }
    app.route({
      method: 'POST',
      url: '/sign-in',
      onRequest: onPost,
      handler: async (request, reply) => this.#signIn(request, reply),
    })
    app.route({
      method: 'POST',
      url: '/sign-out',
      onRequest: onPost,
      handler: async (request, reply) => this.#signOut(request, reply),
    })
  }

  /** Who asks with the cookie of a session; undefined without one. Throws where another page may have sent it. */
  async principalOf({ headers, id }: FastifyRequest, purpose: Purpose): Promise<Principal | undefined> {
    const secret = readCookie(headers, this.#cookie)
    if (secret === undefined) return undefined
    throwUnlessOwnPage(headers)
    const { sessions, authenticator } = this.#host
    const keyId = sessions.keyOf(secret)
    if (keyId === undefined)
      throw new AirlockError('unauthenticated', 'You are signed out.', { hint: 'Sign in again.' })
    try {
      return await authenticator.principalOfKey(keyId, id, purpose)
    } catch (error) {
      if (error instanceof AirlockError && error.code === 'unauthenticated') sessions.close(secret)
      throw error
    }
  }

  async #signIn(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const waitS = this.#attempts.find(networkOf(request.ip)).take()
    if (waitS > 0)
      throw new AirlockError('too_many_requests', 'Too many attempts to sign in.', { retryAfterS: Math.ceil(waitS) })
    const body = parseSignIn(decodeText(await readBounded(request.raw, { maxBytes: BODY_BYTES })))
    const principal = await this.#verify(body, request)
    const { tenant, actor } = principal
    const payload = { by: 'key' in body ? 'key' : 'link', requestId: request.id }
    await this.#host.audit.require({ tenant, actor, point: 'auth.sign_in', status: 'done', payload })
    this.#end(request)
    const secret = this.#host.sessions.open(actor.slice(KEY_ACTOR.length))
    return reply
      .header('set-cookie', this.#cookieText(secret, SESSION_MS / 1000))
      .code(204)
      .send()
  }

  async #verify(body: z.output<typeof signInBody>, { id }: FastifyRequest): Promise<Principal> {
    const { authenticator, sessions } = this.#host
    if ('link' in body) {
      const keyId = sessions.spendLink(body.link)
      if (keyId === undefined)
        throw new AirlockError('unauthenticated', 'The link was used before, or is too old.', {
          hint: 'Sign in with an API key.',
        })
      return authenticator.principalOfKey(keyId, id, 'any')
    }
    const principal = await authenticator.authenticate(`Bearer ${body.key}`, id).catch((error: unknown) => {
      if (!(error instanceof AirlockError) || error.code !== 'unauthenticated') throw error
      throw new AirlockError('unauthenticated', 'The server does not accept this key.', {
        hint: 'Paste the whole key, al_…; it may be revoked or over.',
      })
    })
    if (principal.actor.startsWith(KEY_ACTOR)) return principal
    throw new AirlockError('forbidden', 'A token of an identity provider cannot sign in here.', {
      hint: 'Sign in with an API key: airlock keys create NAME',
    })
  }

  async #signOut(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const principal = await this.principalOf(request, 'reduce').catch(() => undefined)
    this.#end(request)
    if (principal) {
      const { tenant, actor } = principal
      const payload = { requestId: request.id }
      this.#host.audit.note({ tenant, actor, point: 'auth.sign_out', status: 'done', payload })
    }
    return reply.header('set-cookie', this.#cookieText('', 0)).code(204).send()
  }

  #end({ headers }: FastifyRequest): void {
    const secret = readCookie(headers, this.#cookie)
    if (secret !== undefined) this.#host.sessions.close(secret)
  }

  /** With this prefix browsers let no other host and no http set it. */
  get #cookie(): string {
    return this.#host.isSecure ? `__Host-${this.#host.cookie}` : this.#host.cookie
  }

  #cookieText(value: string, maxAgeS: number): string {
    const secure = this.#host.isSecure ? '; Secure' : ''
    return `${this.#cookie}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${secure}`
  }
}

const KEY_ACTOR = 'key:'

function parseSignIn(text: string): z.output<typeof signInBody> {
  const parsed = signInBody.safeParse(parseJson(text))
  if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
  return parsed.data
}

/**
 * Another site cannot send the header without asking first, and we never agree. A page of another port of this host is
 * refused by its origin: to browsers it is the same site.
 */
function throwUnlessOwnPage(headers: IncomingHttpHeaders): void {
  const { 'sec-fetch-site': site, 'airlock-page': page } = headers
  throwOnForeignOrigin(headers, false)
  if (page !== '1' || (site !== undefined && site !== 'same-origin'))
    throw new AirlockError('forbidden', 'Only the page of this server may ask with its cookie.', {
      hint: 'Ask from a program with an API key.',
    })
}

/** Undefined without it. A second one of the same name would be another reader's choice: then there is none. */
function readCookie({ cookie }: IncomingHttpHeaders, name: string): string | undefined {
  const values = (cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  return values.length === 1 && values[0] !== '' ? values[0] : undefined
}

function sendFile(file: PageFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.headers({
    'cache-control': file.cache,
    'content-security-policy': POLICY,
    'cross-origin-opener-policy': 'same-origin',
    'x-frame-options': 'DENY',
    etag: file.etag,
    vary: 'accept-encoding',
  })
  if (request.headers['if-none-match'] === file.etag) return reply.code(304).send()
  const isZipped = /\bgzip\b/.test(request.headers['accept-encoding']?.toString() ?? '')
  if (isZipped) reply.header('content-encoding', 'gzip')
  return reply.type(file.type).send(isZipped ? file.zipped : file.bytes)
}
