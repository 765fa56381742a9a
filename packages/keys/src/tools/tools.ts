import { createHash, type KeyObject } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  AirlockError,
  isAirlockError,
  openSecret,
  sendTool,
  type SendTool,
  type ToolAnswer,
  type ToolOrder,
} from '@airlock/contract'
import type { Log } from '@airlock/std'
import { readJson, sendJson } from '@airlock/wire'
import { Client, type Dispatcher } from 'undici'
import type { ReservationDesk } from '../reservations.ts'
import { type Key, parseKey } from '../secret/key.ts'
import { codeOf, NotConnected } from '../upstream/connect.ts'
import { Shares } from '../upstream/shares.ts'
import { connectorFor, type Endpoint } from './connect.ts'
import { holdsSecret } from './inspect-call.ts'

interface ToolsOptions {
  readonly orders: Pick<ReservationDesk, 'takeOrder'>
  /** Addresses that are not public and may be dialled all the same. */
  readonly listed: readonly Endpoint[]
  readonly log: Log
}

/** An order and a body, both bounded by the control plane. */
const MAX_BODY = 1024 * 1024
/** Calls at once; a tenant has at most half of what the others leave. */
const AT_ONCE = 256
const CONNECT_MS = 10_000
const MAX_HEAD_BYTES = 16 * 1024

/** Headers of an answer that are passed on. */
const PASSED = ['content-type', 'retry-after', 'etag', 'last-modified', 'x-request-id'] as const
const PLAIN = /^[\x20-\x7e]{1,256}$/

/**
 * Calls of tools, each against an order that the control plane signed. The secret is opened here, for the origin that its client
 * sealed it for, and goes into one header of one request on a connection of its own.
 */
export class Tools {
  readonly #options: ToolsOptions
  readonly #shares = new Shares(AT_ONCE)
  /** Opens secrets. */
  #privateKey: KeyObject | undefined

  constructor(options: ToolsOptions) {
    this.#options = options
  }

  /** Until then every call with a secret is refused. */
  begin(privateKey: KeyObject): void {
    this.#privateKey = privateKey
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort(new AirlockError('timeout', 'The caller is gone.')))
    const asked = await readJson(request, sendTool, MAX_BODY)
    const order = this.#options.orders.takeOrder(asked.order)
    assertBody(order, asked)
    if (!this.#shares.take(order)) throw new AirlockError('too_many_requests', 'Too many calls of tools are under way.')
    try {
      sendJson(response, 200, await this.#send(order, asked.body, gone.signal))
    } catch (error) {
      // Nobody is there to be told.
      if (!gone.signal.aborted) throw error
    } finally {
      this.#shares.give(order)
    }
  }

  async #send(order: ToolOrder, body: string | null, signal: AbortSignal): Promise<ToolAnswer> {
    const key = this.#open(order)
    const encodings = key?.encodings ?? []
    const said = [order.target, body ?? '', ...Object.values(order.headers)]
    if (said.some((text) => holdsSecret(text, encodings))) throw new AirlockError('secret_in_call')
    const origin = new URL(order.origin)
    const { timeoutMs } = order
    const client = new Client(origin, {
      connect: connectorFor(origin, this.#options.listed, Math.min(CONNECT_MS, timeoutMs)),
      pipelining: 1,
      allowH2: false,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxHeaderSize: MAX_HEAD_BYTES,
    })
    const late = AbortSignal.timeout(timeoutMs)
    try {
      const answer = await client.request({
        method: order.method,
        path: order.target,
        headers: headersOf(order, key, body),
        body,
        signal: AbortSignal.any([signal, late]),
      })
      return await readAnswer(answer, order.maxAnswerBytes, encodings)
    } catch (error) {
      throw this.#failure(error, { order, isLate: late.aborted, signal })
    } finally {
      await client.destroy()
    }
  }

  /** Fails closed: a secret goes to the origin that it was sealed for, whatever was signed. */
  #open({ tenant, origin, secret }: ToolOrder): Key | undefined {
    if (secret === null) return undefined
    const { name, sealed } = secret
    if (secret.origin !== origin)
      throw new AirlockError(
        'secret_unavailable',
        `The secret ${name} was put for ${secret.origin}, not for ${origin}.`,
      )
    if (!this.#privateKey) throw new AirlockError('not_ready')
    const value = openSecret(sealed, { tenant, name, origin }, this.#privateKey)
    if (value === undefined) throw new AirlockError('secret_unavailable', `The secret ${name} cannot be opened here.`)
    try {
      return parseKey(Buffer.from(value, 'utf8'))
    } catch (cause) {
      throw new AirlockError('secret_unavailable', `The secret ${name} is not 16 to 2048 visible ASCII characters.`, {
        cause,
      })
    }
  }

  /** The text of an error may quote the other side: its code is enough. */
  #failure(error: unknown, { order, isLate, signal }: Failed): unknown {
    if (signal.aborted) return signal.reason
    const { tenant, tool, origin } = order
    const failure = isAirlockError(error) ? error : typed(error, { isLate, origin })
    const reason = error instanceof NotConnected ? error.reason : codeOf(error)
    this.#options.log.info('a call of a tool failed', { tenant, tool, origin, code: failure.code, reason })
    return failure
  }
}

interface Failed {
  readonly order: ToolOrder
  readonly isLate: boolean
  readonly signal: AbortSignal
}

function typed(
  error: unknown,
  { isLate, origin }: { readonly isLate: boolean; readonly origin: string },
): AirlockError {
  if (error instanceof NotConnected && error.reason === 'ADDRESS_REFUSED')
    return new AirlockError('address_refused', `${origin} is not at an address that tools may call.`)
  if (error instanceof NotConnected) return new AirlockError('service_unavailable')
  const isTimeout = isLate || ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'].includes(codeOf(error))
  return new AirlockError(isTimeout ? 'service_timeout' : 'service_broken')
}

/** The doors carry the body, and cannot choose it. */
function assertBody({ bodySha256 }: ToolOrder, { body }: SendTool): void {
  const sha256 = body === null ? null : createHash('sha256').update(body).digest('hex')
  if (sha256 !== bodySha256) throw new AirlockError('reservation_rejected', 'The body is not the one of the order.')
}

// oxlint-disable-next-line max-params -- the parts of one head
function headersOf({ headers, secret }: ToolOrder, key: Key | undefined, body: string | null) {
  return {
    accept: 'application/json',
    'user-agent': 'airlock',
    ...headers,
    // A compressed answer could hold the secret unseen.
    'accept-encoding': 'identity',
    ...(body === null ? {} : { 'content-type': 'application/json' }),
    ...(secret === null || key === undefined ? {} : { [secret.header]: credentialOf(secret, key) }),
  }
}

function credentialOf({ prefix, basicUser }: NonNullable<ToolOrder['secret']>, key: Key): string {
  if (basicUser === null) return `${prefix}${key.reveal()}`
  return `Basic ${Buffer.from(`${basicUser}:${key.reveal()}`).toString('base64')}`
}

/** The whole answer is there before a byte of it goes on. */
// oxlint-disable-next-line max-params -- an answer, and what bounds it
async function readAnswer(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  mostBytes: number,
  encodings: readonly Buffer[],
): Promise<ToolAnswer> {
  // A reader hears an error by itself; an answer that nobody reads may fail unheard.
  body.on('error', () => {})
  if (status >= 300 && status < 400 && status !== 304)
    throw new AirlockError('service_broken', `The service answered with a redirect (${status}), and none is followed.`)
  const { 'content-encoding': coding = 'identity', 'transfer-encoding': transfer = 'chunked' } = headers
  if (coding !== 'identity' || String(transfer).toLowerCase() !== 'chunked')
    throw new AirlockError('service_broken', 'The service answered in an encoding that was not asked for.')
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > mostBytes) throw new AirlockError('service_broken', `The answer has more than ${mostBytes} bytes.`)
    chunks.push(chunk)
  }
  const bytes = Buffer.concat(chunks)
  const passed = passedHeaders(headers)
  if (holdsSecret(bytes.toString('latin1'), encodings) || holdsSecret(JSON.stringify(passed), encodings))
    throw new AirlockError('secret_in_answer')
  return { status, headers: passed, body: bytes.toString('base64') }
}

/** A header that is repeated, too long or not plain text is left out. */
function passedHeaders(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name of PASSED) {
    const value = headers[name]
    if (typeof value === 'string' && PLAIN.test(value)) passed[name] = value
  }
  return passed
}
