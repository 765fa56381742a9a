import { AirlockError, type RouteName } from '@airlock/contract'
import { McpHttp } from '@airlock/mcp'
import type { Log } from '@airlock/std'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../app/caller.ts'
import type { AdmittedRequest } from './admission/admission.ts'
import { readText } from './body.ts'
import type { Handlers } from './call.ts'
import { throwOnForeignOrigin } from './host-check.ts'
import { HandlerRoutes } from './mcp-routes.ts'
import { VERSION } from './openapi.ts'

/** A message holds at most the code of a step, or a file to write, in JSON. */
const BODY_BYTES = 4 * 1024 * 1024
const METHODS = ['POST', 'GET', 'DELETE'] as const

export interface McpHost {
  readonly handlers: Handlers
  readonly log: Log
  /** Waits for a turn. Throws without a good key, or beyond the rates. */
  readonly enter: (request: FastifyRequest, reply: FastifyReply) => Promise<Caller>
  /** The same for a route that a tool calls. Throws also when the caller may not use it. */
  readonly admit: (name: RouteName, caller: Caller, admitted: AdmittedRequest) => Promise<void>
  /** Whether the server answers to loopback names only. */
  readonly isLocal: () => boolean
  /** Aborts when the client is gone or the server closes. */
  readonly signalFor: (reply: FastifyReply) => AbortSignal
}

/** `/mcp`: the tools of `@airlock/mcp` over streamable HTTP, for whoever has a key, with the rights of that key. */
export function registerMcp(app: FastifyInstance, host: McpHost): McpHttp {
  const http = new McpHttp()
  app.route({
    method: [...METHODS],
    url: '/mcp',
    onRequest: async (request, reply) => {
      request.routeName = 'mcp'
      throwOnForeignOrigin(request.headers, host.isLocal())
      await host.enter(request, reply)
    },
    handler: async (request, reply) => {
      const { caller, admitted } = request
      if (!caller || !admitted) throw new AirlockError('unauthenticated')
      const { handlers, log } = host
      const admit = async (name: RouteName): Promise<void> => host.admit(name, caller, admitted)
      const response = await http.answer({
        routes: new HandlerRoutes({ handlers, admit, caller }),
        version: VERSION,
        owner: `${caller.principal.tenant} ${caller.principal.actor}`,
        method: request.method,
        headers: toHeaders(request),
        body: request.method === 'POST' ? await readText(request, BODY_BYTES) : undefined,
        signal: host.signalFor(reply),
        onFault: (error) => log.error('a tool failed', { requestId: caller.requestId, error }),
      })
      return reply.send(response)
    },
  })
  return http
}

/** Without the key: what comes after has no use for it. */
function toHeaders(request: FastifyRequest): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && name !== 'authorization' && name !== 'content-length')
      headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  return headers
}
