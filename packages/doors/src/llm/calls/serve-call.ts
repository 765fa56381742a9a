import { once } from 'node:events'
import {
  AirlockError,
  type AnthropicVersion,
  type Failpoint,
  isAirlockError,
  MODEL_BODY_BYTES,
  type OpenedModelCall,
  toAirlockError,
} from '@airlock/contract'
import type { Log } from '@airlock/std'
import { isUnsent, type KeysAnswer, type KeysClient } from '../../keys/keys-client.ts'
import type { ControlPlaneLink } from '../../link/control-plane-link.ts'
import type { ByteBudget, HeldBody } from '../../listener/byte-budget.ts'
import type { DoorResponse } from '../../listener/http-door.ts'
import { type Answering as AnsweringSteps, AnswerStream } from '../answer/answer-stream.ts'
import type { StreamedCall } from '../answer/judge-event.ts'
import { MAX_ERROR_BYTES, typeFailure, usageOfFailure } from '../answer/provider-error.ts'
import { answerHeaders, kindOfAnswer } from '../answer/read-answer.ts'
import { writeStreamError } from '../answer/stream-error.ts'
import { answerDemo } from '../demo/answer-demo.ts'
import type { Protocol } from '../routes/find-route.ts'
import { answerError } from './answer-error.ts'
import type { CallCloser } from './call-closer.ts'
import { CallEnd } from './call-end.ts'
import type { LoopShare } from './loop-share.ts'
import type { OpenCalls } from './open-calls.ts'
import type { PreparedCall } from './prepare-call.ts'
import type { Preparation } from './preparation.ts'
import type { Holder } from './turns.ts'

export interface ServeParts {
  readonly controlPlane: Pick<ControlPlaneLink, 'openModelCall'>
  /** Null where no upstream is configured. */
  readonly keys: Pick<KeysClient, 'send'> | null
  readonly closer: Pick<CallCloser, 'opened' | 'close'>
  readonly preparation: Pick<Preparation, 'judge' | 'readAnswer'>
  readonly failpoint: Failpoint
  readonly log: Log
}

export interface CallToServe {
  readonly sandbox: string
  readonly protocol: Protocol
  readonly version: AnthropicVersion
  readonly prepared: PreparedCall
  /** Calls of the same sandbox that are under way. */
  readonly calls: OpenCalls
  readonly tenant: string
  readonly loop: LoopShare
  /** Bound on the bytes of answers that wait for their rest. */
  readonly answers: ByteBudget
  /** The body is not needed any more. */
  readonly release: () => void
  /** Aborts when the connection is gone. */
  readonly signal: AbortSignal
}

const OPEN_MS = 10_000
/** Time in which a client must take what was written to it. */
const STALL_MS = 60_000

/**
 * Asks for a call, makes it, and reports its end, whichever that is. Throws before anything was opened; from then on errors are
 * answered here.
 */
export async function serveCall(call: CallToServe, response: DoorResponse, parts: ServeParts): Promise<void> {
  const { sandbox, prepared, calls, signal } = call
  const { route, asked, isStream: stream, inputTokens, maxOutputTokens, ceilingMicroDollars } = prepared
  const question = { sandbox, route, model: asked, stream, inputTokens, maxOutputTokens, ceilingMicroDollars }
  const opened = await calls.opening(async () =>
    parts.controlPlane.openModelCall(question, { answerMs: OPEN_MS, signal }),
  )
  parts.closer.opened(opened.callId)
  const end = new CallEnd(opened.callId)
  const under = calls.begin({ id: opened.callId, model: prepared.model.name }, signal)
  const held = call.answers.open()
  try {
    await new Answering({ call, opened, end, response, parts, held, signal: under.signal }).run()
  } catch (thrown) {
    const error = whyOf(thrown, under.signal)
    end.failed(error)
    if (error.code === 'internal') parts.log.error('a model call failed', { call: opened.callId, error: thrown })
    const charged = end.isChargedCeiling ? ceilingMicroDollars : null
    answerLate(error, { call, callId: opened.callId, response, charged })
  } finally {
    held.release()
    under.end()
    await parts.failpoint('model.ended')
    const status = signal.aborted && !response.writableEnded ? null : response.statusCode
    parts.closer.close({ ...end.report(status), sandbox })
  }
}

interface AnsweringOptions {
  readonly call: CallToServe
  readonly opened: OpenedModelCall
  readonly end: CallEnd
  readonly response: DoorResponse
  readonly parts: ServeParts
  /** Bytes of the answer that wait for their rest. */
  readonly held: HeldBody
  /** Aborts when the connection is gone, or when the call may not go on. */
  readonly signal: AbortSignal
}

/** One open call, from its first byte to its last. */
class Answering {
  readonly #options: AnsweringOptions

  constructor(options: AnsweringOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { call, opened, signal } = this.#options
    signal.throwIfAborted()
    if (opened.reservation === null) return this.#answerDemo(call.prepared.demo)
    const answer = await this.#send(opened.reservation)
    const { status, contentType } = answer
    const kind = kindOfAnswer({ status, contentType }, call.prepared.isStream)
    if (kind === 'failure') return this.#fail(answer)
    if (kind === 'broken') throw new AirlockError('upstream_broken')
    await (kind === 'stream' ? this.#stream(answer.body) : this.#whole(answer.body))
  }

  async #send(reservation: string): Promise<KeysAnswer> {
    const { call, end, parts, signal } = this.#options
    const { version, prepared, release } = call
    if (parts.keys === null) throw new AirlockError('upstream_unavailable', 'The server has no configured upstream.')
    end.sent()
    await parts.failpoint('model.sent')
    try {
      const answer = await parts.keys.send({ reservation, version, body: prepared.body }, signal)
      release()
      end.begun()
      await parts.failpoint('model.begun')
      return answer
    } catch (error) {
      if (isAirlockError(error) && isUnsent(error)) end.unsent()
      throw error
    }
  }

  async #stream(body: AsyncIterable<Buffer>): Promise<void> {
    const { call, opened, end, response } = this.#options
    const { name, wantsUsageChunk } = call.prepared
    const streamed = { name, callId: opened.callId, wantsUsageChunk }
    const stream = new AnswerStream(streamed)
    try {
      response.writeHead(200, answerHeaders('stream', opened.callId))
      response.flushHeaders()
      for await (const chunk of untilBroken(body, () => stream.hasEnded)) {
        end.begun()
        for (const piece of await this.#judged(stream.write(chunk), streamed)) await this.#write(piece)
        this.#hold(stream.heldBytes)
      }
      for (const piece of await this.#judged(stream.end(), streamed)) await this.#write(piece)
    } finally {
      end.metered(stream.meter)
    }
    response.end()
  }

  /** The bytes that go on, once each event was read: short ones here, long ones in a thread. */
  async #judged(steps: AnsweringSteps, streamed: StreamedCall): Promise<readonly Buffer[]> {
    const { call, parts, signal } = this.#options
    let step = await call.loop.run(() => steps.next())
    while (step.done !== true) {
      signal.throwIfAborted()
      const { value } = step
      const judged = value === 'rest' ? undefined : await parts.preparation.judge(value.bytes, streamed, this.#holder)
      step = await call.loop.run(() => steps.next(judged))
    }
    return step.value
  }

  get #holder(): Holder {
    const { tenant, sandbox } = this.#options.call
    return { tenant, sandbox }
  }

  #heldBytes = 0

  #hold(bytes: number): void {
    const { held } = this.#options
    if (bytes < this.#heldBytes) {
      held.release()
      this.#heldBytes = 0
    }
    if (bytes > this.#heldBytes) held.take(bytes - this.#heldBytes)
    this.#heldBytes = bytes
  }

  /** As fast as the client reads. */
  async #write(piece: Buffer): Promise<void> {
    const { response, signal } = this.#options
    signal.throwIfAborted()
    if (response.write(piece)) return
    // A client that stalls cannot be told: its connection is cut, and the signal aborts with it.
    const timer = setTimeout(() => response.destroy(), STALL_MS)
    await once(response, 'drain', { signal }).finally(() => clearTimeout(timer))
  }

  async #whole(body: AsyncIterable<Buffer>): Promise<void> {
    const { call, opened, end, response, parts } = this.#options
    const { name } = call.prepared
    const came = await this.#collect(body, MODEL_BODY_BYTES)
    const { replaced, ...metered } = await parts.preparation.readAnswer(name, came, this.#holder)
    const bytes = replaced ?? came
    // Counting is free of charge, and its answer has no usage.
    if (name === 'countTokens') end.refused()
    else end.metered(metered)
    response.writeHead(200, { ...answerHeaders('json', opened.callId), 'content-length': bytes.length })
    response.end(bytes)
  }

  async #fail({ status, retryAfter, body }: KeysAnswer): Promise<void> {
    const { call, opened, end, response } = this.#options
    const { name, ceilingMicroDollars } = call.prepared
    // A rejected request is free of charge, also where its reason breaks off.
    if (status < 500) end.refused()
    const said = await this.#collect(body, MAX_ERROR_BYTES).catch(() => undefined)
    if (said !== undefined && name !== 'countTokens') end.failedWhole(usageOfFailure(name, said))
    const failure = typeFailure({ status, retryAfter, body: said })
    end.failed(failure.error)
    const charged = end.isChargedCeiling ? ceilingMicroDollars : null
    const answered = { protocol: call.protocol, callId: opened.callId, status: failure.status, charged }
    answerError(response, failure.error, answered)
  }

  async #collect(body: AsyncIterable<Buffer>, most: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of body) {
      size += chunk.length
      if (size > most) throw new AirlockError('upstream_broken', 'The answer of the provider is too long.')
      this.#hold(size)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  async #answerDemo(demo: PreparedCall['demo']): Promise<void> {
    if (demo === null) throw new AirlockError('upstream_unavailable', 'The call has no reservation.')
    const { call, opened, end } = this.#options
    const made = { callId: opened.callId, createdAt: Math.floor(Date.now() / 1000) }
    const { kind, chunks } = answerDemo(demo, made)
    call.release()
    end.begun()
    await (kind === 'stream' ? this.#stream(iterate(chunks)) : this.#whole(iterate(chunks)))
  }
}

/** A connection that breaks off after the last event of its stream breaks nothing off. */
async function* untilBroken(body: AsyncIterable<Buffer>, hasEnded: () => boolean): AsyncGenerator<Buffer> {
  try {
    yield* body
  } catch (error) {
    if (!isAirlockError(error) || error.code !== 'upstream_broken' || !hasEnded()) throw error
  }
}

async function* iterate(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}

/** A call that may not go on says why; a client that is gone is not told anything. */
function whyOf(thrown: unknown, { aborted, reason }: AbortSignal): AirlockError {
  if (!aborted) return toAirlockError(thrown)
  return isAirlockError(reason) ? reason : new AirlockError('timeout', 'The client is gone.')
}

interface Late {
  /** Micro-dollars, where the call is charged its ceiling. */
  readonly charged: number | null
  readonly call: CallToServe
  readonly callId: string
  readonly response: DoorResponse
}

/** Answers the error, or ends the stream that has begun with it: the SDK of its protocol throws it. */
function answerLate(error: AirlockError, { call, callId, response, charged }: Late): void {
  if (response.destroyed) return
  if (!response.headersSent) answerError(response, error, { protocol: call.protocol, callId, charged })
  else if (!response.writableEnded) response.end(writeStreamError(error, { name: call.prepared.name, callId, charged }))
}
