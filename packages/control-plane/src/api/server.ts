import type { AuditSink } from '@airlock/audit'
import { AirlockError, ROUTES, type Role, type Route, type RouteName } from '@airlock/contract'
import { newId, type Log } from '@airlock/std'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { setTimeout as delay } from 'node:timers/promises'
import type { Authenticator } from '../identity/authenticate.ts'
import type { Caller, Core } from '../orchestration/core.ts'
import { cutWhenIdle, throwOnBody } from './body.ts'
import type { Handlers } from './call.ts'
import { isLoopback, throwOnForeignHost } from './host-check.ts'
import { createListener, refuseMalformed, type Tls } from './listener.ts'
import { Metrics } from './metrics.ts'
import { parseCall } from './parse.ts'
import { type Exchange, sendAnswer, sendError } from './reply.ts'
import { auditHandlers } from './routes/audit.ts'
import { commandHandlers } from './routes/commands.ts'
import { fileHandlers } from './routes/files.ts'
import { sandboxHandlers } from './routes/sandboxes.ts'
import { systemHandlers } from './routes/system.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until authenticated, and on public routes. */
    caller: Caller | null
    routeName: RouteName | null
  }
}

/** What is still answering when the server closes gets this long to end. */
const CLOSE_MS = 2_000
const CLOSE_SWEEP_MS = 20

export interface ApiOptions {
  readonly core: Core
  readonly authenticator: Authenticator
  readonly audit: AuditSink
  readonly log: Log
  readonly tls: Tls | null
  readonly trustedProxy: boolean
}

export interface Api {
  /** Answers the URL. Fails closed: an address beyond loopback needs TLS, here or in a trusted proxy. */
  listen(host: string, port: number): Promise<string>
  /** Ends what streams, answers nothing new, and closes every connection within a bounded time. */
  close(): Promise<void>
}

/** The HTTP edge, driven by the route table: there is no route that is not in it. */
export async function createApi(options: ApiOptions): Promise<Api> {
  const edge = new Edge(options)
  await edge.prepare()
  return edge
}

const HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

class Edge implements Api {
  readonly #options: ApiOptions
  readonly #app: FastifyInstance
  readonly #handlers: Handlers
  readonly #metrics = new Metrics()
  readonly #closing = new AbortController()
  #checksHost = true

  constructor(options: ApiOptions) {
    this.#options = options
    this.#handlers = handlersFor(options.core, this.#metrics)
    this.#app = fastify({
      serverFactory: (handler) => createListener(handler, options.tls),
      clientErrorHandler: refuseMalformed,
      frameworkErrors: (error, request, reply) => {
        this.#greet(request, reply)
        this.#refuse(error, request, reply)
      },
      genReqId: () => newId('req'),
      requestIdHeader: false,
      routerOptions: { maxParamLength: 8 * 1024 },
      exposeHeadRoutes: false,
      return503OnClosing: false,
      trustProxy: options.trustedProxy,
    })
  }

  async prepare(): Promise<void> {
    const app = this.#app
    app.decorateRequest('caller', null)
    app.decorateRequest('routeName', null)
    app.removeAllContentTypeParsers()
    // Bodies are read by the one who parses them, after the caller is known.
    app.addContentTypeParser('*', (_request, _payload, done) => done(null))
    app.addHook('onRequest', async (request, reply) => this.#meet(request, reply))
    app.addHook('onResponse', async (request, reply) =>
      this.#metrics.observe({
        route: request.routeName ?? 'none',
        status: reply.statusCode,
        durationMs: reply.elapsedTime,
      }),
    )
    app.setErrorHandler((error, request, reply) => this.#refuse(error, request, reply))
    for (const name of Object.keys(ROUTES).filter(isRouteName)) this.#register(name)
    await app.ready()
  }

  async listen(host: string, port: number): Promise<string> {
    const { tls, trustedProxy } = this.#options
    if (!isLoopback(host) && !tls && !trustedProxy)
      throw new AirlockError('config_invalid', `host: ${host} is not loopback, so it needs TLS or trusted_proxy.`)
    this.#checksHost = isLoopback(host) && !trustedProxy
    await this.#app.listen({ host, port })
    const address = this.#app.server.address()
    const bound = typeof address === 'object' && address ? address.port : port
    return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${bound}`
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const { server } = this.#app
    const closed = this.#app.close()
    // A connection whose last answer ends after this would be kept alive for the next one.
    const sweep = setInterval(() => server.closeIdleConnections(), CLOSE_SWEEP_MS)
    await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })])
    clearInterval(sweep)
    server.closeAllConnections()
    await closed
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- N ties the handler to its call
  #register<N extends RouteName>(name: N): void {
    const route: Route = ROUTES[name]
    this.#app.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: async (request) => {
        request.routeName = name
        if (route.roles !== 'public') request.caller = await this.#identify(name, route.roles, request)
        throwOnBody(route, request.headers)
      },
      handler: async (request, reply) => {
        if (request.headers.expect !== undefined) reply.raw.writeContinue()
        if (name === 'writeFile') cutWhenIdle(request.raw)
        const signal = AbortSignal.any([goneSignal(reply), this.#closing.signal])
        const answer = await this.#handlers[name](await parseCall(name, request, signal))
        return sendAnswer(name, answer, this.#exchange(request, reply))
      },
    })
  }

  /** What holds for every request, known route or not, before anything of it is believed. */
  #meet(request: FastifyRequest, reply: FastifyReply): void {
    this.#greet(request, reply)
    if (this.#closing.signal.aborted) throw new AirlockError('not_ready', 'The server is stopping.')
    if (this.#checksHost) throwOnForeignHost(request.headers.host)
    if (request.is404)
      throw new AirlockError('route_not_found', `There is no route ${request.method} ${pathOf(request)}.`)
  }

  #greet(request: FastifyRequest, reply: FastifyReply): void {
    reply.headers(HEADERS).header('x-request-id', request.id)
    if (this.#options.tls) reply.header('strict-transport-security', 'max-age=31536000')
  }

  async #identify(name: RouteName, roles: readonly Role[], request: FastifyRequest): Promise<Caller> {
    const { authenticator, audit } = this.#options
    const principal = await authenticator.authenticate(request.headers.authorization, request.id)
    if (roles.includes(principal.role)) return { principal, requestId: request.id }
    audit.note({
      tenant: principal.tenant,
      actor: principal.actor,
      point: 'auth.refuse',
      status: 'denied',
      error: { code: 'forbidden', message: 'The role may not use the route.' },
      payload: { route: name, role: principal.role, requestId: request.id },
    })
    throw new AirlockError('forbidden', `A key with the role ${principal.role} may not do that.`, {
      hint: `Use a key with one of the roles ${roles.join(', ')}.`,
    })
  }

  #refuse(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    sendError(thrown, this.#exchange(request, reply))
  }

  #exchange(request: FastifyRequest, reply: FastifyReply): Exchange {
    return { request, reply, log: this.#options.log, closing: this.#closing.signal }
  }
}

function handlersFor(core: Core, metrics: Metrics): Handlers {
  return {
    ...sandboxHandlers(core),
    ...commandHandlers(core),
    ...fileHandlers(core),
    ...auditHandlers(core),
    ...systemHandlers(core, metrics),
  }
}

function isRouteName(name: string): name is RouteName {
  return Object.hasOwn(ROUTES, name)
}

/** Aborts when the connection closes before the answer is out. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  return gone.signal
}

function pathOf(request: FastifyRequest): string {
  return (request.url.split('?')[0] ?? '').slice(0, 200)
}
