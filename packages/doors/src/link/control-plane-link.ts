import {
  AirlockError,
  askAnswer,
  type CloseModelCall,
  type ControlCall,
  type DoorCall,
  DOORS_PROTOCOL,
  type DoorsChange,
  fromControlPlane,
  type FromControlPlane,
  type FromDoors,
  isErrorCode,
  MAX_DOOR_CALLS,
  MAX_NAMED_CALLS,
  type CloseNetworkCall,
  type CloseToolCall,
  type ListToolsCall,
  openedToolCall,
  type OpenedToolCall,
  type OpenToolCall,
  type ToolInside,
  toolsInside,
  openedModelCall,
  openedNetworkCall,
  type OpenedNetworkCall,
  type OpenNetworkCall,
  type OpenedModelCall,
  type OpenModelCall,
  renewedToken,
  self,
} from '@airlock/contract'
import { type Log, newId } from '@airlock/std'
import { KeptLink, type LineSocket } from '@airlock/wire'
import { z } from 'zod'
import { PendingCalls } from './pending-calls.ts'

const PING_MS = 1_000
/** A control plane that leaves so many pings in a row unanswered is away. */
const MAX_PINGS = 4
/** Calls of one sandbox under way: the others keep their share of the connection. */
const CALLS_OF_SANDBOX = 32

const ANSWERS = { self, heartbeat: self, renew: renewedToken, ask: askAnswer } as const
export type ControlAnswer = z.infer<(typeof ANSWERS)[ControlCall['ask']]>
const nothing = z.strictObject({})
/** What is opened by an answer, also by one that comes too late. */
const OPENS: ReadonlySet<DoorCall['ask']> = new Set(['model.open', 'network.open', 'tool.open'])

interface CallOptions {
  /** Until the answer has to be there. */
  readonly answerMs: number
  /** Aborts when the program inside does not wait any more. */
  readonly signal: AbortSignal
}

/** A connection to a host that was opened after it had been given up. */
export interface LateConnection {
  readonly connection: string
  readonly sandbox: string
}

export interface LateOpen {
  readonly callId: string
  readonly sandbox: string
}

/** A call of a tool that was opened after it had been given up. */
export interface LateTool {
  readonly call: string
  readonly sandbox: string
}

interface LinkOptions {
  readonly socket: string
  readonly log: Log
  /** Calls of models that are open, or not reported yet. */
  readonly modelCalls: () => readonly string[]
  /** Called before anything that is asked later: calls of these sandboxes that were under way have been refused. */
  readonly onChanged: (change: DoorsChange) => void
  /** These connections to hosts are not allowed any more. */
  readonly onCut: (cut: { readonly sandbox: string; readonly connections: readonly string[] }) => void
  /** Nothing that was decided can be taken back any more. */
  readonly onLost: () => void
  /** An open of a model call was answered after it had been given up. The call must be closed. */
  readonly onLateOpen: (late: LateOpen) => void
  /** The same of a connection to a host. */
  readonly onLateConnection: (late: LateConnection) => void
  /** The same of a call of a tool. */
  readonly onLateTool: (late: LateTool) => void
  readonly pingMs?: number
}

/**
 * The control plane, on one connection that is kept. It fails closed: without a connection whose other side has said hello and
 * answers pings, every call is `not_ready` at once, and so is every call that was under way when it broke. No call is sent twice.
 */
export class ControlPlaneLink {
  readonly #options: LinkOptions
  readonly #pending = new PendingCalls(MAX_DOOR_CALLS, CALLS_OF_SANDBOX)
  readonly #process = newId('doors')
  /** Sandboxes of model calls, connections and calls of tools whose open has no answer yet, also of those that were given up. */
  readonly #opening = new Map<number, string>()
  #link: KeptLink | undefined
  #pings: NodeJS.Timeout | undefined
  /** Open, and perhaps not greeted yet. */
  #socket: LineSocket | undefined
  #isGreeted = false
  #unansweredPings = 0
  /** Told of the next hello. */
  readonly #waiting = new Set<() => void>()

  constructor(options: LinkOptions) {
    this.#options = options
  }

  /** Dials from now on. */
  open(): void {
    const { socket: unix, pingMs = PING_MS } = this.#options
    this.#link = new KeptLink({
      address: { unix },
      onOpen: (socket) => this.#greet(socket),
      onLine: (line, socket) => this.#hear(line, socket),
      onLost: () => this.#lost(),
    })
    this.#pings = setInterval(() => this.#ping(), pingMs).unref()
  }

  /** The control plane is known to be there: resolves when it has said hello, or does not in that time. */
  async ready(ms: number): Promise<void> {
    this.#link?.hurry()
    if (this.#isGreeted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const late = setTimeout(resolve, ms)
    this.#waiting.add(resolve)
    await promise
    clearTimeout(late)
    this.#waiting.delete(resolve)
  }

  /** What is asked is made here, word by word. */
  async call(call: ControlCall, options: CallOptions): Promise<ControlAnswer> {
    return this.#parsed<ControlAnswer>(ANSWERS[call.ask], call, options)
  }

  /** A call that is opened must be closed. When this rejects, nothing is open. */
  async openModelCall(asked: OpenModelCall, options: CallOptions): Promise<OpenedModelCall> {
    return this.#parsed(openedModelCall, { ...asked, ask: 'model.open' }, options)
  }

  async closeModelCall(end: CloseModelCall & { readonly sandbox: string }, options: CallOptions): Promise<void> {
    await this.#parsed(nothing, { ...end, ask: 'model.close' }, options)
  }

  /** A connection that is opened must be closed. When this rejects, nothing is open. */
  async openConnection(asked: OpenNetworkCall, options: CallOptions): Promise<OpenedNetworkCall> {
    return this.#parsed(openedNetworkCall, { ...asked, ask: 'network.open' }, options)
  }

  async closeConnection(end: CloseNetworkCall, options: CallOptions): Promise<void> {
    await this.#parsed(nothing, { ...end, ask: 'network.close' }, options)
  }

  /** Tools that the program may call. */
  async listTools(asked: ListToolsCall, options: CallOptions): Promise<readonly ToolInside[]> {
    return (await this.#parsed(toolsInside, { ...asked, ask: 'tool.list' }, options)).tools
  }

  /** A call that is opened must be closed. When this rejects, nothing is open. */
  async openToolCall(asked: OpenToolCall, options: CallOptions): Promise<OpenedToolCall> {
    return this.#parsed(openedToolCall, { ...asked, ask: 'tool.open' }, options)
  }

  async closeToolCall(end: CloseToolCall, options: CallOptions): Promise<void> {
    await this.#parsed(nothing, { ...end, ask: 'tool.close' }, options)
  }

  // oxlint-disable-next-line max-params -- a question, and how its answer is read
  async #parsed<T>(schema: z.ZodType<T>, call: DoorCall, options: CallOptions): Promise<T> {
    const parsed = schema.safeParse(await this.#answered(call, options))
    if (parsed.success) return parsed.data
    // To a program inside it is the same: nothing was allowed, and it may ask again.
    throw away(parsed.error)
  }

  /** Ends what is under way as `not_ready`. */
  close(): void {
    clearInterval(this.#pings)
    this.#link?.close()
    this.#lost()
  }

  async #answered(call: DoorCall, { answerMs, signal }: CallOptions): Promise<unknown> {
    if (!this.#isGreeted) throw away()
    const { id, answer, settle } = this.#pending.add(call.sandbox)
    const drop = (error: AirlockError) => {
      if (settle(error)) this.#send({ type: 'cancel', id })
    }
    const onAbort = () => drop(away(signal.reason))
    const late = setTimeout(() => drop(away()), answerMs)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      if (signal.aborted) onAbort()
      else {
        if (OPENS.has(call.ask)) this.#opening.set(id, call.sandbox)
        this.#send({ type: 'call', id, call })
      }
      return await answer
    } finally {
      clearTimeout(late)
      signal.removeEventListener('abort', onAbort)
    }
  }

  #greet(socket: LineSocket): void {
    this.#socket = socket
    this.#unansweredPings = 0
    const held = this.#options.modelCalls()
    const modelCalls = held.length <= MAX_NAMED_CALLS ? [...held] : null
    this.#send({ type: 'hello', protocol: DOORS_PROTOCOL, process: this.#process, modelCalls })
  }

  #hear(line: string, socket: LineSocket): void {
    // What came in one piece with the frame that ended it.
    if (!socket.isOpen) return
    const frame = parse(line)
    if (!frame || this.#isGreeted === (frame.type === 'hello'))
      return this.#break(socket, 'it says what was not agreed')
    switch (frame.type) {
      case 'hello':
        return this.#hello(frame.protocol, socket)
      case 'answer':
        return this.#answer(frame)
      case 'refusal':
        this.#opening.delete(frame.id)
        return void this.#pending.settle(frame.id, refusalOf(frame.error))
      case 'changed':
        return this.#changed(frame.change)
      case 'cut':
        return this.#options.onCut(frame)
      case 'pong':
        this.#unansweredPings = 0
    }
  }

  #answer({ id, value }: Extract<FromControlPlane, { type: 'answer' }>): void {
    const sandbox = this.#opening.get(id)
    this.#opening.delete(id)
    if (this.#pending.settle(id, value) || sandbox === undefined) return
    const late = openedModelCall.safeParse(value)
    if (late.success) this.#options.onLateOpen({ callId: late.data.callId, sandbox })
    const connection = openedNetworkCall.safeParse(value)
    if (connection.success) this.#options.onLateConnection({ connection: connection.data.connection, sandbox })
    const tool = openedToolCall.safeParse(value)
    if (tool.success) this.#options.onLateTool({ call: tool.data.call, sandbox })
  }

  #hello(protocol: number, socket: LineSocket): void {
    if (protocol !== DOORS_PROTOCOL) return this.#break(socket, `it speaks protocol ${protocol}`)
    this.#isGreeted = true
    for (const resolve of this.#waiting) resolve()
    this.#link?.settled()
  }

  /** What was asked under a token, or by a sandbox, that is good no more is not answered. */
  #changed(change: DoorsChange): void {
    if (change.what === 'revoked' || change.what === 'shut')
      for (const id of this.#pending.refuse(change.sandboxes, new AirlockError('token_refused')))
        this.#send({ type: 'cancel', id })
    this.#options.onChanged(change)
  }

  /** A peer that was stopped keeps its connection: only its silence tells. */
  #ping(): void {
    if (!this.#socket) return
    if (++this.#unansweredPings > MAX_PINGS) return this.#break(this.#socket, 'it does not answer')
    if (this.#isGreeted) this.#send({ type: 'ping' })
  }

  #break(socket: LineSocket, why: string): void {
    this.#options.log.warn('closing the connection to the control plane', { why })
    socket.destroy()
    if (socket === this.#socket) this.#lost()
  }

  #lost(): void {
    const wasGreeted = this.#isGreeted
    this.#socket = undefined
    this.#isGreeted = false
    this.#opening.clear()
    this.#pending.refuse(null, away())
    if (wasGreeted) this.#options.onLost()
  }

  #send(frame: FromDoors): void {
    this.#socket?.send(JSON.stringify(frame))
  }
}

function parse(line: string): FromControlPlane | undefined {
  try {
    return fromControlPlane.safeParse(JSON.parse(line)).data
  } catch {
    // Not JSON: the same as a frame of no known form.
    return undefined
  }
}

type Refusal = Extract<FromControlPlane, { type: 'refusal' }>['error']

function refusalOf({ code, message, hint, ...rest }: Refusal): AirlockError {
  if (!isErrorCode(code)) return away()
  const { retryAfterS, approval } = rest
  return new AirlockError(code, message, {
    hint,
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
    ...(approval === undefined ? {} : { approval }),
  })
}

function away(cause?: unknown): AirlockError {
  return new AirlockError('not_ready', 'The server does not answer.', { cause })
}
