import { join } from 'node:path'
import { AirlockError, DOOR_SOCKETS, MODEL_BODY_BYTES, type ServedModel } from '@airlock/contract'
import { LLM_PORT } from '@airlock/contract/guest'
import type { ConfigOf, Door, DoorChange, OpenDoor } from '../doors.ts'
import { ByteBudget, TenantBytes } from '../listener/byte-budget.ts'
import {
  type DoorRequest,
  type Exchange,
  type HttpDoor,
  json,
  openHttpDoor,
  type Route,
} from '../listener/http-door.ts'
import { describeModel, listModels } from './answer/model-list.ts'
import { answerError } from './calls/answer-error.ts'
import { LoopShare } from './calls/loop-share.ts'
import { OpenCalls } from './calls/open-calls.ts'
import type { Preparation } from './calls/preparation.ts'
import { findModel } from './calls/prepare-call.ts'
import { serveCall, type ServeParts } from './calls/serve-call.ts'
import { readHeaders } from './request/read-headers.ts'
import { type CallName, findRoute, protocolOf } from './routes/find-route.ts'

const MIB = 1024 * 1024
const HOSTS: ReadonlySet<string> = new Set([
  ...['127.0.0.1', 'localhost'].flatMap((host) => [host, `${host}:${LLM_PORT}`]),
  'airlock',
])
const BOUNDS = {
  connections: 256,
  requestsPerConnection: 10_000,
  headMs: 5_000,
  requestMs: 60_000,
  idleMs: 5_000,
  silentMs: 10_000,
  rate: { burst: 1_000, perSecond: 500 },
} as const
const CALLS_AT_ONCE = 200
/** Two of the largest bodies of one sandbox, four of a tenant that is alone. Answers have as much. */
const LARGE_OF_SANDBOX = 64 * MIB
const LARGE_OF_ALL = 256 * MIB
/** The first bytes of every body. */
const SMALL_OF_ALL = 64 * MIB

type LlmConfig = ConfigOf<'llm'>

/**
 * The door of models: what `openai` and `@anthropic-ai/sdk` ask, of the models in its configuration. Which socket a request came
 * by is who pays. Nothing that came in goes on but the fields that a route lists.
 */
export function llmDoor(parts: LlmParts): OpenDoor<LlmConfig> {
  const asked = [new TenantBytes(SMALL_OF_ALL), new TenantBytes(LARGE_OF_ALL)] as const
  const answered = [new TenantBytes(SMALL_OF_ALL), new TenantBytes(LARGE_OF_ALL)] as const
  return async ({ sandbox, dir, config }) => {
    const budgetOf = ([small, large]: typeof asked) =>
      new ByteBudget({ tenant: config.tenant, most: LARGE_OF_SANDBOX, small, large })
    const [bodies, answers] = [budgetOf(asked), budgetOf(answered)]
    const door = new LlmDoor({ sandbox, config, parts, answers })
    await door.open(join(dir, DOOR_SOCKETS.llm), bodies)
    return door
  }
}

interface LlmParts extends ServeParts {
  readonly preparation: Preparation
}

interface LlmDoorOptions {
  readonly sandbox: string
  readonly config: LlmConfig
  readonly parts: LlmParts
  readonly answers: ByteBudget
}

class LlmDoor implements Door<LlmConfig> {
  readonly #sandbox: string
  readonly #tenant: string
  readonly #parts: LlmParts
  readonly #calls = new OpenCalls()
  readonly #loop = new LoopShare()
  readonly #answers: ByteBudget
  #models: readonly ServedModel[]
  #http: HttpDoor | undefined

  constructor({ sandbox, config, parts, answers }: LlmDoorOptions) {
    this.#answers = answers
    this.#sandbox = sandbox
    this.#parts = parts
    this.#models = config.models
    this.#tenant = config.tenant
  }

  async open(path: string, bodies: ByteBudget): Promise<void> {
    this.#http = await openHttpDoor({
      path,
      hosts: HOSTS,
      nameOf,
      routes: this.#routes(),
      bounds: BOUNDS,
      bodies,
      refuse,
      log: this.#parts.log,
    })
  }

  configure({ models }: LlmConfig): void {
    this.#models = models
    this.#calls.keepOnly(new Set(models.map(({ name }) => name)))
  }

  cut(calls: readonly string[]): void {
    this.#calls.cut(calls)
  }

  /** Each call is judged when it is opened, and the control plane names those that rules deny later. */
  changed(what: DoorChange): void {
    if (what === 'revoked' || what === 'shut') this.#http?.cut()
  }

  async close(): Promise<void> {
    await this.#http?.close()
  }

  #routes(): Readonly<Record<string, Route>> {
    return {
      health: { maxBodyBytes: 0, answer: json(async () => ({ status: 'ok', sandbox: this.#sandbox })) },
      models: { maxBodyBytes: 0, answer: json(async (request) => this.#list(request)) },
      model: { maxBodyBytes: 0, answer: json(async (request) => this.#describe(request)) },
      chat: this.#call('chat'),
      responses: this.#call('responses'),
      embeddings: this.#call('embeddings'),
      messages: this.#call('messages'),
      countTokens: this.#call('countTokens'),
    }
  }

  #list({ target, headers }: DoorRequest): object {
    const names = this.#models.flatMap(({ name, aliases }) => [name, ...aliases])
    return listModels(names, protocolOf({ target, headers }))
  }

  #describe({ target, headers }: DoorRequest): object {
    const route = findRoute({ method: 'GET', target, headers })
    if (route?.name !== 'model') throw new AirlockError('route_not_found')
    findModel(route.model, this.#models)
    return describeModel(route.model, route.protocol)
  }

  #call(name: CallName): Route {
    return {
      maxBodyBytes: MODEL_BODY_BYTES,
      atOnce: CALLS_AT_ONCE,
      answer: async ({ target, headers, body, signal, release }, response) => {
        const protocol = protocolOf({ target, headers })
        const { version } = readHeaders(headers, protocol)
        const { preparation } = this.#parts
        const models = this.#models
        const own = { tenant: this.#tenant, sandbox: this.#sandbox }
        const prepared = await preparation.prepare({ name, bytes: body, models }, own)
        const of = { ...own, calls: this.#calls, loop: this.#loop, answers: this.#answers }
        await serveCall({ ...of, protocol, version, prepared, release, signal }, response, this.#parts)
      },
    }
  }
}

function nameOf({ method = '', url: target = '', headers }: Exchange['request']): string | undefined {
  return findRoute({ method, target, headers })?.name
}

function refuse({ request, response }: Exchange, error: AirlockError, requestId: string): void {
  const protocol = protocolOf({ target: request.url ?? '', headers: request.headers })
  if (!response.headersSent) response.setHeader('connection', 'close')
  answerError(response, error, { protocol, callId: requestId })
}
