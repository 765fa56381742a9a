import {
  AirlockError,
  type CloseToolCall,
  type OpenedToolCall,
  type OpenToolCall,
  toAirlockError,
  type ToolAnswer,
  toolDenied,
} from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { DoorChange } from '../doors.ts'
import type { KeysClient } from '../keys/keys-client.ts'
import type { ControlPlaneLink } from '../link/control-plane-link.ts'

/** Calls of one sandbox at once. The kept connection takes more, for its other doors ask there too. */
const AT_ONCE = 8
/** A person may be asked meanwhile. */
const DECISION_MS = 45_000
const REPORT_MS = 10_000

export interface BrokerParts {
  readonly controlPlane: Pick<ControlPlaneLink, 'listTools' | 'openToolCall' | 'closeToolCall'>
  /** Null where the process is not there: every call is refused. */
  readonly keys: Pick<KeysClient, 'callTool'> | null
  readonly log: Log
}

type Asked = Omit<OpenToolCall, 'sandbox'>

/** The answer of a service, as a program inside reads it. */
interface ToolResult {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** `text` is UTF-8, anything else base64. */
  readonly encoding: 'text' | 'base64'
  readonly body: string
}

/** Calls of one sandbox that are under way: decided on, sent, reported and cut one by one. */
export class BrokerCalls {
  readonly #sandbox: string
  readonly #parts: BrokerParts
  readonly #underWay = new Set<AbortController>()
  readonly #byCall = new Map<string, AbortController>()

  constructor(sandbox: string, parts: BrokerParts) {
    this.#sandbox = sandbox
    this.#parts = parts
  }

  /** Resolves when the service answered and the end is reported. Every call that is opened is reported once. */
  async call(asked: Asked, gone: AbortSignal): Promise<ToolResult> {
    if (this.#underWay.size >= AT_ONCE) throw new AirlockError('too_many_requests')
    const cut = new AbortController()
    const signal = AbortSignal.any([gone, cut.signal])
    this.#underWay.add(cut)
    try {
      const { controlPlane } = this.#parts
      const opened = await controlPlane.openToolCall(
        { ...asked, sandbox: this.#sandbox },
        { answerMs: DECISION_MS, signal },
      )
      this.#byCall.set(opened.call, cut)
      return await this.#send(opened, signal)
    } catch (error) {
      // The reason of a cut explains more than what broke by it.
      throw cut.signal.aborted ? toAirlockError(cut.signal.reason) : error
    } finally {
      this.#underWay.delete(cut)
    }
  }

  cut(calls: readonly string[]): void {
    for (const call of calls) this.#byCall.get(call)?.abort(toolDenied())
  }

  cutAll(reason: DoorChange): void {
    for (const cut of this.#underWay) cut.abort(REASONS[reason]())
  }

  async #send({ call, order, body, timeoutMs }: OpenedToolCall, signal: AbortSignal): Promise<ToolResult> {
    const { keys } = this.#parts
    try {
      if (keys === null) throw new AirlockError('not_ready', 'The process that holds the keys is away.')
      signal.throwIfAborted()
      const late = AbortSignal.timeout(timeoutMs + GRACE_MS)
      const answer = await keys.callTool({ order, body }, AbortSignal.any([signal, late]))
      const received = Buffer.byteLength(answer.body, 'base64')
      await this.#report({ call, status: answer.status, received, error: null, message: null })
      return resultOf(answer)
    } catch (thrown) {
      const error = toAirlockError(signal.aborted ? reasonOf(signal) : thrown)
      const message = error.message.slice(0, 512)
      await this.#report({ call, status: null, received: 0, error: error.code, message })
      // One text for all denials.
      throw error.code === 'secret_in_call' ? toolDenied() : error
    } finally {
      this.#byCall.delete(call)
    }
  }

  /** Before the program hears of the end. The control plane records an unknown one when it cannot be told. */
  async #report(end: Omit<CloseToolCall, 'sandbox'>): Promise<void> {
    const { controlPlane, log } = this.#parts
    const sandbox = this.#sandbox
    try {
      const options = { answerMs: REPORT_MS, signal: new AbortController().signal }
      await controlPlane.closeToolCall({ ...end, sandbox }, options)
    } catch (error) {
      log.warn('could not report the end of a call of a tool', { sandbox, call: end.call, error })
    }
  }
}

/** `keys` ends a call by itself; this is for one that stands still. */
const GRACE_MS = 5_000

const REASONS: Readonly<Record<DoorChange, () => AirlockError>> = {
  revoked: () => new AirlockError('token_refused'),
  shut: () => new AirlockError('sandbox_ended'),
  paused: () => new AirlockError('sandbox_paused'),
  policy: () => toolDenied(),
  lost: () => new AirlockError('not_ready', 'The server lost the call; the service may have done what was asked.'),
}

function reasonOf({ reason }: AbortSignal): AirlockError {
  return reason instanceof Error && 'code' in reason
    ? toAirlockError(reason)
    : new AirlockError('timeout', 'The client is gone.')
}

function resultOf({ status, headers, body }: ToolAnswer): ToolResult {
  const bytes = Buffer.from(body, 'base64')
  const text = bytes.toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(bytes)
  return { status, headers, encoding: isText ? 'text' : 'base64', body: isText ? text : body }
}
