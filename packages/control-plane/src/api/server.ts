import type { AuditSink } from '@airlock/audit'
import { AirlockError, isReducing, type Principal, ROUTES, type Route, type RouteName } from '@airlock/contract'
import type { McpHttp } from '@airlock/mcp'
import { type Clock, newId, type Log } from '@airlock/std'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { setTimeout as delay } from 'node:timers/promises'
import type { Authenticator } from '../identity/authenticate.ts'
import type { MetricFeed } from '../monitor/metrics.ts'
import type { App } from '../app/app.ts'
import type { Caller } from '../app/caller.ts'
import { Admission, type AdmittedRequest } from './admission/admission.ts'
import type { RequestRateBounds } from './admission/request-rates.ts'
import type { Lane } from './admission/turns.ts'
import { parseWait } from './asked.ts'
import { cutWhenIdle, isUpload, throwOnBody } from './body.ts'
import type { Answer, Handlers } from './call.ts'
import { isLoopback, throwOnForeignHost, throwOnRepeated } from './host-check.ts'
import { createListener, refuseMalformed, type Tls } from './listener.ts'
import { registerMcp } from './mcp.ts'
import { PageDoor, type PageOptions } from './page/page-door.ts'
import { Metrics } from './metrics.ts'
import { parseCall } from './parse.ts'
import { type Exchange, sendAnswer, sendError } from './reply.ts'
import { sendFile } from './send-file.ts'
import { agentHandlers } from './routes/agents.ts'
import { approvalHandlers } from './routes/approvals.ts'
import { artifactHandlers } from './routes/artifacts.ts'
import { toolHandlers } from './routes/tools.ts'
import { auditHandlers } from './routes/audit.ts'
import { budgetHandlers } from './routes/budgets.ts'
import { commandHandlers } from './routes/commands.ts'
import { eventHandlers } from './routes/events.ts'
import { fileHandlers } from './routes/files.ts'
import { worktreeHandlers } from './routes/worktrees.ts'
import { grantHandlers } from './routes/grants.ts'
import { jobHandlers } from './routes/jobs.ts'
import { keyHandlers } from './routes/keys.ts'
import { killHandlers } from './routes/kills.ts'
import { metricHandlers } from './routes/metrics.ts'
import { modelHandlers } from './routes/models.ts'
import { openaiHandlers } from './routes/openai.ts'
import { policyHandlers } from './routes/policies.ts'
import { runHandlers } from './routes/runs.ts'
import { sandboxHandlers } from './routes/sandboxes.ts'
import { sessionHandlers } from './routes/sessions.ts'
import { systemHandlers } from './routes/system.ts'
import { templateHandlers } from './routes/templates.ts'
import { tenantHandlers } from './routes/tenants.ts'
import { usageHandlers } from './routes/usage.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until authenticated, and on public routes. */
    caller: Caller | null
    /** Null until admitted, and on public routes. */
    admitted: AdmittedRequest | null
    routeName: RouteName | 'mcp' | 'page' | null
  }
}

/** What is still answering when the server closes gets this long to end. */
const CLOSE_MS = 2_000
const CLOSE_SWEEP_MS = 20
/** Connections that wait to be accepted; the kernel has a bound of its own. */
const BACKLOG = 4_096

export interface ApiOptions {
  readonly app: App & { readonly metrics: MetricFeed }
  readonly authenticator: Authenticator
  readonly audit: AuditSink
  readonly clock: Clock
  readonly log: Log
  readonly tls: Tls | null
  readonly trustedProxy: boolean
  readonly requestRates: RequestRateBounds
  readonly page: PageOptions
}

export interface Api {
  /** Answers the URL. Fails closed: an address beyond loopback needs TLS, here or in a trusted proxy. */
  listen(host: string, port: number): Promise<string>
  /** Ends what streams, answers nothing new, and closes every connection within a bounded time. */
  close(): Promise<void>
}

/** The HTTP edge, driven by the route table. Beside it there are `/mcp`, whose tools use that table, and the page with its sign-in. */
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
  readonly #admission: Admission
  readonly #page: PageDoor
  #checksHost = true
  #mcp: McpHttp | undefined

  constructor(options: ApiOptions) {
    this.#options = options
    this.#handlers = handlersFor(options, this.#metrics)
    this.#admission = new Admission({ rates: options.requestRates, trustedProxy: options.trustedProxy })
    this.#page = new PageDoor({ ...options, ...options.page, isSecure: options.tls !== null || options.trustedProxy })
    this.#app = fastify({
      serverFactory: (handler) => this.#admission.watch(createListener(this.#admission.inTurn(handler), options.tls)),
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
      // What our own proxy saw. What it was told by the caller is no better than the caller.
      trustProxy: options.trustedProxy && ((_address, hops) => hops === 0),
    })
  }

  async prepare(): Promise<void> {
    const app = this.#app
    app.decorateRequest('caller', null)
    app.decorateRequest('admitted', null)
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
    this.#mcp = this.#registerMcp()
    this.#page.register(app)
    await app.ready()
  }

  async listen(host: string, port: number): Promise<string> {
    const { tls, trustedProxy } = this.#options
    if (!isLoopback(host) && !tls && !trustedProxy)
      throw new AirlockError('config_invalid', `host: ${host} is not loopback, so it needs TLS or trusted_proxy.`)
    this.#checksHost = isLoopback(host) && !trustedProxy
    await this.#app.listen({ host, port, backlog: BACKLOG })
    const address = this.#app.server.address()
    const bound = typeof address === 'object' && address ? address.port : port
    return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${bound}`
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const { server } = this.#app
    const closed = this.#app.close()
    const ended = Promise.all([closed, this.#mcp?.idle()])
    // A connection whose last answer ends after this would be kept alive for the next one.
    const sweep = setInterval(() => server.closeIdleConnections(), CLOSE_SWEEP_MS)
    await Promise.race([ended, delay(CLOSE_MS, undefined, { ref: false })])
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
      onRequest: async (request, reply) => {
        request.routeName = name
        if (route.roles !== 'public') {
          const caller = await this.#enter(request, reply, laneOf(route))
          this.#admit(name, caller)
        }
        throwOnBody(route, request.headers)
      },
      handler: async (request, reply) => {
        if (request.headers.expect !== undefined) reply.raw.writeContinue()
        if (isUpload(name)) cutWhenIdle(request.raw)
        const answer: Answer = await this.#handlers[name](await parseCall(name, request, this.#signalFor(reply)))
        const exchange = this.#exchange(request, reply)
        return answer.kind === 'file' ? sendFile(answer, exchange) : sendAnswer(name, answer, exchange)
      },
    })
  }

  #registerMcp(): McpHttp {
    return registerMcp(this.#app, {
      handlers: this.#handlers,
      log: this.#options.log,
      enter: async (request, reply) => this.#enter(request, reply, 'other'),
      admit: async (name, caller, admitted) => {
        await admitted.beginAnother(laneOf(ROUTES[name]))
        this.#admit(name, caller)
      },
      isLocal: () => this.#checksHost,
      signalFor: (reply) => this.#signalFor(reply),
    })
  }

  /** Aborts when the connection closes before the answer is out, or the server does. */
  #signalFor(reply: FastifyReply): AbortSignal {
    const gone = new AbortController()
    const leave = () => gone.abort()
    if (this.#closing.signal.aborted) leave()
    this.#closing.signal.addEventListener('abort', leave)
    reply.raw.once('close', () => {
      this.#closing.signal.removeEventListener('abort', leave)
      if (!reply.raw.writableFinished) gone.abort()
    })
    return gone.signal
  }

  /** What holds for every request, known route or not, before anything of it is believed. */
  #meet(request: FastifyRequest, reply: FastifyReply): void {
    this.#greet(request, reply)
    if (this.#closing.signal.aborted) throw new AirlockError('not_ready', 'The server is stopping.')
    throwOnRepeated(request.raw.rawHeaders)
    if (this.#checksHost) throwOnForeignHost(request.raw)
    if (request.is404)
      throw new AirlockError('route_not_found', `There is no route ${request.method} ${pathOf(request)}.`)
  }

  #greet(request: FastifyRequest, reply: FastifyReply): void {
    reply.headers(HEADERS).header('x-request-id', request.id)
    if (this.#options.tls) reply.header('strict-transport-security', 'max-age=31536000')
    if (this.#options.trustedProxy) this.#admission.locate(request.raw, request.ip)
    // Only who is admitted keeps a connection: until then, every answer is the last.
    reply.header('connection', 'close')
  }

  /** Authenticates the caller, and waits for the turn of the request. */
  async #enter(request: FastifyRequest, reply: FastifyReply, lane: Lane): Promise<Caller> {
    const holder = await this.#principalOf(request, lane)
    const connected = this.#admission.connect(request.raw, holder, lane)
    if (connected === 'within') reply.removeHeader('connection')
    const exchange = { request: request.raw, response: reply.raw }
    request.admitted = await this.#admission.enter(exchange, { holder, lane, connected })
    if (request.admitted.isBeyond) reply.header('connection', 'close')
    const approvalWait = parseWait(request.headers, this.#options.clock.now())
    request.caller = { principal: holder, requestId: request.id, approvalWait }
    return request.caller
  }

  /** A cookie of the page counts where no key is shown, and never at `/mcp`: its tools are for programs. */
  async #principalOf(request: FastifyRequest, lane: Lane): Promise<Principal> {
    const { authorization } = request.headers
    const purpose = lane === 'reduces' ? 'reduce' : 'any'
    const mayBeCookie = authorization === undefined && request.routeName !== 'mcp'
    const signedIn = mayBeCookie ? await this.#page.principalOf(request, purpose) : undefined
    return signedIn ?? this.#options.authenticator.authenticate(authorization, request.id, purpose)
  }

  /** The role has to be enough, and we must be able to: no handler asks for that again. */
  #admit(name: RouteName, caller: Caller): void {
    this.#authorize(name, caller)
    this.#options.app.readiness.assert(ROUTES[name].needs)
  }

  #authorize(name: RouteName, { principal, requestId }: Caller): void {
    const refusal = refuseRole(ROUTES[name], principal)
    if (!refusal) return
    this.#options.audit.note({
      tenant: principal.tenant,
      actor: principal.actor,
      point: 'auth.refuse',
      status: 'denied',
      error: { code: 'forbidden', message: refusal.message },
      payload: { route: name, role: principal.role, requestId },
    })
    throw refusal
  }

  #refuse(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    sendError(thrown, this.#exchange(request, reply))
  }

  #exchange(request: FastifyRequest, reply: FastifyReply): Exchange {
    return { request, reply, log: this.#options.log, closing: this.#closing.signal }
  }
}

function handlersFor({ app }: ApiOptions, metrics: Metrics): Handlers {
  return {
    ...agentHandlers(app.agents),
    ...budgetHandlers(app.budgets),
    ...usageHandlers(app.usage),
    ...grantHandlers(app.grants),
    ...keyHandlers(app.keys),
    ...killHandlers(app.killswitch),
    ...approvalHandlers(app),
    ...toolHandlers(app),
    ...tenantHandlers(app.tenants),
    ...modelHandlers(app),
    ...policyHandlers(app),
    ...sandboxHandlers(app),
    ...commandHandlers(app.commands),
    ...sessionHandlers(app),
    ...jobHandlers(app.jobs),
    ...artifactHandlers(app.artifacts),
    ...runHandlers(app),
    ...openaiHandlers(app),
    ...fileHandlers(app.files),
    ...worktreeHandlers(app.worktrees),
    ...templateHandlers(app.templates),
    ...auditHandlers(app.audit),
    ...eventHandlers(app.events),
    ...metricHandlers(app.metrics),
    ...systemHandlers(app, { metrics, feed: app.metrics }),
  }
}

/** Why the role of somebody is not enough for a route. */
function refuseRole(route: Route, principal: Principal): AirlockError | undefined {
  const { roles, scope } = route
  if (roles === 'public') return undefined
  if (!roles.includes(principal.role))
    return new AirlockError('forbidden', `A key with the role ${principal.role} may not do that.`, {
      hint: `Use a key with one of the roles ${roles.join(', ')}.`,
    })
  if (scope !== 'platform' || principal.platform) return undefined
  return new AirlockError('forbidden', 'This concerns the whole server, not a tenant.', {
    hint: 'Use a key of the platform, such as admin.key.',
  })
}

function laneOf(route: Route): Lane {
  return isReducing(route) ? 'reduces' : 'other'
}

function isRouteName(name: string): name is RouteName {
  return Object.hasOwn(ROUTES, name)
}

function pathOf(request: FastifyRequest): string {
  return (request.url.split('?')[0] ?? '').slice(0, 200)
}
