import { randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import {
  encodeMessage,
  FrameDecoder,
  type GuestCommandEnd,
  type GuestCommandState,
  type GuestError,
  type GuestMessage,
  type GuestRequest,
  type GuestResults,
  type GuestRuntime,
  type GuestSession,
  type GuestStepSpec,
  type HostMessage,
  STREAM,
} from '@airlock/contract/guest'

class GuestRefusal extends Error {
  readonly code: string
  constructor(error: GuestError) {
    super(error.message)
    this.code = error.code
  }
}

/** Everything that a step said, and how it ended. */
export interface FinishedStep {
  readonly stdout: string
  readonly stderr: string
  readonly rich: readonly unknown[]
  readonly exitCode: number | null
  readonly timedOut: boolean
  readonly restarted: boolean
  readonly truncated: boolean
}

interface Heard {
  readonly bytes: { readonly stream: number; readonly bytes: Buffer }[]
  readonly closed: PromiseWithResolvers<void>
  received: number
  truncated: boolean
  end: GuestCommandEnd | undefined
}

/** The least host that a guest can talk to. */
export class TestHost {
  /** While false nothing is acknowledged. */
  isTaking = true
  readonly #server: Server
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #heard = new Map<number, Heard>()
  #socket: Socket | undefined
  #attached = Promise.withResolvers<void>()
  #hello: readonly GuestCommandState[] = []
  #requests = 0
  #channels = 0

  constructor(path: string) {
    this.#server = createServer((socket) => this.#accept(socket)).listen(path)
  }

  /** What the guest remembered when it dialled last. */
  get hello(): readonly GuestCommandState[] {
    return this.#hello
  }

  async attached(): Promise<void> {
    await this.#attached.promise
  }

  close(): void {
    this.#socket?.destroy()
    this.#server.close()
  }

  /** As when the host dies and comes back. */
  async reconnect(): Promise<void> {
    this.#attached = Promise.withResolvers()
    this.#socket?.destroy()
    await this.attached()
  }

  async request<R extends GuestRequest>(request: R): Promise<GuestResults[R['op']]> {
    const answer = Promise.withResolvers<unknown>()
    const id = this.#requests++
    this.#answers.set(id, answer)
    this.#send({ type: 'request', id, request })
    return (await answer.promise) as GuestResults[R['op']]
  }

  async openSession(
    runtime: GuestRuntime,
    options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
  ): Promise<TestSession> {
    const id = `ses_${randomBytes(6).toString('hex')}`
    return new TestSession(this, await this.request({ op: 'session.open', session: { id, runtime, ...options } }))
  }

  spec(session: string, code: string, options: Partial<GuestStepSpec> = {}): GuestStepSpec {
    return {
      id: `stp_${randomBytes(6).toString('hex')}`,
      channel: ++this.#channels,
      session,
      code,
      env: {},
      stdin: '',
      timeoutMs: 20_000,
      maxOutputBytes: 2 * 1024 * 1024,
      ...options,
    }
  }

  async start(spec: GuestStepSpec): Promise<void> {
    this.#hear(spec.channel)
    await this.request({ op: 'step', step: spec })
  }

  async finish(channel: number): Promise<FinishedStep> {
    const heard = this.#hear(channel)
    await heard.closed.promise
    const { end } = heard
    if (!end) throw new TypeError('it closed before it ended')
    const lines = this.said(channel, 'rich').split('\n').filter(Boolean)
    return {
      stdout: this.said(channel, 'stdout'),
      stderr: this.said(channel, 'stderr'),
      rich: lines.map((line): unknown => JSON.parse(line)),
      exitCode: end.exitCode,
      timedOut: end.timedOut,
      restarted: end.restarted ?? false,
      truncated: heard.truncated,
    }
  }

  said(channel: number, stream: 'stdout' | 'stderr' | 'rich'): string {
    const parts = this.#hear(channel).bytes.filter((part) => part.stream === STREAM[stream])
    return Buffer.concat(parts.map(({ bytes }) => bytes)).toString('utf8')
  }

  received(channel: number): number {
    return this.#hear(channel).received
  }

  /** Takes what was held back while nothing was acknowledged. */
  take(): void {
    this.isTaking = true
    for (const [channel, { received }] of this.#heard) this.#send({ type: 'ack', channel, offset: received })
  }

  #hear(channel: number): Heard {
    const known = this.#heard.get(channel)
    if (known) return known
    const fresh: Heard = { bytes: [], closed: Promise.withResolvers(), received: 0, truncated: false, end: undefined }
    this.#heard.set(channel, fresh)
    return fresh
  }

  #accept(socket: Socket): void {
    this.#socket = socket
    const decoder = new FrameDecoder()
    socket.on('error', () => {
      // The guest dials again.
    })
    socket.on('data', (chunk) => {
      for (const frame of decoder.push(chunk)) {
        if (frame.kind === 'message') this.#take(frame.json as GuestMessage)
        else this.#takeData(frame)
      }
    })
  }

  #takeData(frame: {
    readonly channel: number
    readonly stream: number
    readonly offset: number
    readonly bytes: Buffer
  }): void {
    const heard = this.#hear(frame.channel)
    const fresh = frame.bytes.subarray(Math.max(0, heard.received - frame.offset))
    if (fresh.length > 0) heard.bytes.push({ stream: frame.stream, bytes: fresh })
    heard.received = Math.max(heard.received, frame.offset + frame.bytes.length)
    if (this.isTaking) this.#send({ type: 'ack', channel: frame.channel, offset: heard.received })
  }

  #take(message: GuestMessage): void {
    if (message.type === 'hello') {
      this.#hello = message.commands
      const received = [...this.#heard].map(([channel, heard]) => ({ channel, offset: heard.received }))
      this.#send({ type: 'attach', received })
      this.#attached.resolve()
    } else if (message.type === 'result') this.#answers.get(message.id)?.resolve(message.result)
    else if (message.type === 'failure') this.#answers.get(message.id)?.reject(new GuestRefusal(message.error))
    else if (message.type === 'exited') this.#hear(message.channel).end = message.end
    else if (message.type === 'closed') {
      this.#hear(message.channel).truncated = message.truncated
      this.#hear(message.channel).closed.resolve()
    }
  }

  #send(message: HostMessage): void {
    this.#socket?.write(encodeMessage(message))
  }
}

/** A session of a guest. */
export class TestSession {
  readonly host: TestHost
  readonly info: GuestSession

  constructor(host: TestHost, info: GuestSession) {
    this.host = host
    this.info = info
  }

  /** Resolves with its channel, at once. */
  async start(code: string, options: Partial<GuestStepSpec> = {}): Promise<number> {
    const spec = this.host.spec(this.info.id, code, options)
    await this.host.start(spec)
    return spec.channel
  }

  async run(code: string, options: Partial<GuestStepSpec> = {}): Promise<FinishedStep> {
    return await this.host.finish(await this.start(code, options))
  }

  async interrupt(): Promise<void> {
    await this.host.request({ op: 'session.interrupt', session: this.info.id })
  }

  async restart(): Promise<GuestSession> {
    return await this.host.request({ op: 'session.restart', session: this.info.id })
  }

  async close(): Promise<void> {
    await this.host.request({ op: 'session.close', session: this.info.id })
  }
}
