import { join } from 'node:path'
import {
  AirlockError,
  describeIssues,
  DOOR_SOCKETS,
  toAirlockError,
  TOOL_BOUNDS,
  toolCallBody,
} from '@airlock/contract'
import { decodeText, parseJson, sendJson } from '@airlock/wire'
import type { ConfigOf, Door, DoorChange, OpenDoor } from '../doors.ts'
import {
  type DoorRequest,
  type DoorResponse,
  type Exchange,
  type HttpDoor,
  openHttpDoor,
} from '../listener/http-door.ts'
import { BrokerCalls, type BrokerParts } from './broker-calls.ts'
import { untilFloor } from './floor.ts'

const HOSTS: ReadonlySet<string> = new Set(['airlock', 'localhost'])
const BOUNDS = {
  connections: 64,
  requestsPerConnection: 1_000,
  headMs: 5_000,
  requestMs: 10_000,
  idleMs: 5_000,
  silentMs: 10_000,
  rate: { burst: 100, perSecond: 50 },
} as const
/** The name of the tool and the JSON around the parameters. */
const MAX_BODY = TOOL_BOUNDS.callBytes + 1024
const LIST_MS = 5_000

/**
 * The door by which a program calls tools: `GET /v1/tools` and `POST /v1/tools/call`. Which socket a request came by is the sandbox,
 * and the token has to agree. Every answer leaves at a multiple of the floor, so that its time says little.
 */
export function brokerDoor(parts: BrokerParts): OpenDoor<ConfigOf<'broker'>> {
  return async ({ sandbox, dir }) => {
    const door = new BrokerDoor(sandbox, parts)
    await door.open(join(dir, DOOR_SOCKETS.broker))
    return door
  }
}

class BrokerDoor implements Door<ConfigOf<'broker'>> {
  readonly #sandbox: string
  readonly #parts: BrokerParts
  readonly #calls: BrokerCalls
  #http: HttpDoor | undefined

  constructor(sandbox: string, parts: BrokerParts) {
    this.#sandbox = sandbox
    this.#parts = parts
    this.#calls = new BrokerCalls(sandbox, parts)
  }

  async open(path: string): Promise<void> {
    this.#http = await openHttpDoor({
      path,
      hosts: HOSTS,
      routes: {
        'GET /v1/tools': {
          maxBodyBytes: 0,
          answer: async (request, response) => answerAtFloor(request, response, async () => this.#list(request)),
        },
        'POST /v1/tools/call': {
          maxBodyBytes: MAX_BODY,
          answer: async (request, response) => answerAtFloor(request, response, async () => this.#call(request)),
        },
      },
      bounds: BOUNDS,
      refuse: refuseAtFloor,
      log: this.#parts.log,
    })
  }

  /** It has no settings. */
  configure(): void {}

  /** The control plane names the calls that other rules do not allow. */
  changed(what: DoorChange): void {
    if (what !== 'policy') this.#calls.cutAll(what)
    if (what === 'revoked' || what === 'shut') this.#http?.cut()
  }

  cut(calls: readonly string[]): void {
    this.#calls.cut(calls)
  }

  async close(): Promise<void> {
    this.#calls.cutAll('shut')
    await this.#http?.close()
  }

  async #list({ token, signal }: DoorRequest): Promise<unknown> {
    const asked = { sandbox: this.#sandbox, token }
    return { tools: await this.#parts.controlPlane.listTools(asked, { answerMs: LIST_MS, signal }) }
  }

  async #call({ requestId, token, body, signal }: DoorRequest): Promise<unknown> {
    const parsed = toolCallBody.safeParse(parseJson(decodeText(body)))
    if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
    return this.#calls.call({ requestId, token, ...parsed.data }, signal)
  }
}

/** Errors are answered like results, so that both take the same way. */
// oxlint-disable-next-line max-params -- a request, where its answer goes, and its work
async function answerAtFloor(
  { requestId, signal }: DoorRequest,
  response: DoorResponse,
  work: () => Promise<unknown>,
): Promise<void> {
  const startedAt = performance.now()
  const answer = await work().then(
    (data) => ({ status: 200, body: { ok: true, data } }),
    (thrown: unknown) => ({
      status: toAirlockError(thrown).status,
      body: refusalOf(toAirlockError(thrown), requestId),
    }),
  )
  await untilFloor(startedAt, signal)
  if (!response.destroyed) sendJson(response, answer.status, answer.body)
}

function refusalOf({ code, message, hint, retryable, approval }: AirlockError, requestId: string): object {
  return { ok: false, error: { code, message, hint, retryable, approval, requestId } }
}

/** For what is not a request of this door, which nothing was asked about. */
// oxlint-disable-next-line max-params -- the shape of the listener
function refuseAtFloor({ response }: Exchange, error: AirlockError, requestId: string): void {
  const signal = new AbortController().signal
  void untilFloor(performance.now(), signal).then(() => {
    if (response.destroyed || response.writableEnded) return
    if (response.headersSent) return void response.destroy()
    response.setHeader('connection', 'close')
    sendJson(response, error.status, refusalOf(error, requestId))
  })
}
