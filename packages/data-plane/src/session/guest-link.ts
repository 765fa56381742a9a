import { chmod, mkdir, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import {
  AirlockError,
  type Failpoint,
  type FileOperation,
  isAirlockError,
  type NodeCommand,
  type NodeCommandSpec,
  type NodeSession,
  type NodeSessionSpec,
  type NodeStepSpec,
  type NodeToken,
} from '@airlock/contract'
import { type GuestCommandState, type GuestRequest, type GuestResults, RICH_BYTES } from '@airlock/contract/guest'
import type { Clock, Log } from '@airlock/std'
import type { CommandRecord } from './command-record.ts'
import { CommandTable, type OutputBounds } from './command-table.ts'
import { ANSWER_MS, withinDeadline } from './deadline.ts'
import type { Strain } from './end-cause.ts'
import { Download, type FileTransfer, Upload } from './file-transfer.ts'
import { type ChannelMessage, type DataFrame, GuestConnection, type Op } from './guest-connection.ts'
import { Notice } from './notice.ts'
import { type OutputAsked, streamOutput } from './output-stream.ts'
import type { GroupUsage } from './spool.ts'

/** How long a guest that went away is given to come back before a request fails. */
const REATTACH_MS = 2000
const FORGET_MS = 20
/** Far less than a guest remembers. */
const FORGET_AT_ONCE = 32

export interface GuestLinkOptions {
  readonly sandbox: string
  /** Where the socket is that the guest dials; bound into the sandbox. */
  readonly controlDir: string
  /** Where commands and their output are kept, beyond the life of this process. */
  readonly spoolDir: string
  readonly outputBounds?: OutputBounds
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  onOverdue(commandId: string): void
  /** What the group of a session has used, read outside; null where it cannot be told. */
  usageOf(session: string): Promise<GroupUsage | null>
  /** What user code has run into so far; cheap, read outside; null where it cannot be told. */
  strainOf(session: string | undefined): Strain | null
  /** Whether something that user code writes to has no room left, looked at outside. */
  isDiskFull(): Promise<boolean>
}

/**
 * Our side of one guest. It listens, the guest dials: one connection lives, a new one replaces it. Commands and their
 * output are in the spool, so neither a lost connection nor the death of this process loses any of them.
 */
export class GuestLink {
  readonly #options: GuestLinkOptions
  readonly #commands: CommandTable
  readonly #transfers = new Map<number, FileTransfer>()
  readonly #starts = new Map<string, Promise<NodeCommand>>()
  readonly #attachment = new Notice()
  #server: Server | undefined
  #attached: GuestConnection | undefined
  #latest: { readonly connection: GuestConnection; readonly done: Promise<void> } | undefined
  #closed: AirlockError | undefined
  /** How long the sandbox was paused in all. */
  #sleptMs = 0
  /** Channels that the guest need not know any longer. */
  readonly #forgotten: number[] = []
  #forgetting: NodeJS.Timeout | undefined

  constructor(options: GuestLinkOptions) {
    this.#options = options
    this.#commands = new CommandTable({
      ...options,
      onOverdue: (id) => options.onOverdue(id),
      usageOf: (session) => options.usageOf(session),
      strainOf: (session) => options.strainOf(session),
      isDiskFull: () => options.isDiskFull(),
      put: (data) => this.#attached?.sendData(data),
      acknowledge: (channel, offset) => this.#attached?.send({ type: 'ack', channel, offset }),
      forget: (channel) => this.#forget(channel),
    })
  }

  /** Finds what an earlier process left in the spool, then lets the guest in. */
  async listen(): Promise<void> {
    await this.#commands.load()
    const path = join(this.#options.controlDir, 'guest.sock')
    await mkdir(this.#options.controlDir, { recursive: true, mode: 0o711 })
    await rm(path, { force: true })
    const server = createServer((socket) => this.#accept(socket))
    this.#server = server
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
    // Who may come near it is decided by the directory.
    await chmod(path, 0o666)
  }

  get isAttached(): boolean {
    return this.#attached !== undefined
  }

  get runningCount(): number {
    return this.#commands.runningCount
  }

  /** Its processes stand still, or are about to: deadlines do not run on. */
  hold(): void {
    this.#commands.hold()
  }

  /** Gives everything that runs the time back that it was paused, `sleptMs` in all by now. Precondition: it still is. */
  release(pausedMs: number, sleptMs: number): void {
    this.saySlept(sleptMs)
    this.#commands.release(pausedMs)
  }

  /** The guest reads it before anything that is due by its own clock. */
  saySlept(sleptMs: number): void {
    this.#sleptMs = Math.max(this.#sleptMs, Math.round(sleptMs))
    this.#attached?.send({ type: 'slept', totalMs: this.#sleptMs })
  }

  async waitForGuest(signal?: AbortSignal): Promise<void> {
    await this.#connection(signal)
  }

  /** For the doors of the sandbox; the guest writes it where programs read it, and renews it from then on. */
  async giveToken(given: NodeToken): Promise<void> {
    await this.#ask({ op: 'token', ...given })
  }

  /** Starts a command. Idempotent: an id that is known is answered as it is. */
  async run(spec: NodeCommandSpec): Promise<NodeCommand> {
    return await this.#once(spec.id, () => this.#start(spec))
  }

  /** Gives code to a session, where it takes its turn; followed like a command. Idempotent in the same way. */
  async step(session: string, spec: NodeStepSpec): Promise<NodeCommand> {
    return await this.#once(spec.id, () => this.#startStep(session, spec))
  }

  /** Starts an interpreter. Idempotent: an id that is known is answered as it is. */
  async openSession(session: NodeSessionSpec): Promise<NodeSession> {
    return await this.#askSession({ op: 'session.open', session })
  }

  async listSessions(): Promise<readonly NodeSession[]> {
    return (await this.#askSession({ op: 'session.list' })).sessions
  }

  async interruptSession(session: string): Promise<void> {
    await this.#askSession({ op: 'session.interrupt', session })
  }

  async restartSession(session: string): Promise<NodeSession> {
    return await this.#askSession({ op: 'session.restart', session })
  }

  /** Idempotent: one that is not there is closed. */
  async closeSession(session: string): Promise<void> {
    try {
      await this.#askSession({ op: 'session.close', session })
    } catch (error) {
      if (!isAirlockError(error) || error.code !== 'session_not_found') throw error
    }
  }

  get(id: string): NodeCommand {
    return this.#commands.get(id).command
  }

  list(): readonly NodeCommand[] {
    return this.#commands.records.map(({ command }) => command).toSorted((a, b) => a.startedAt - b.startedAt)
  }

  /** Resolves once the command has ended and its output is complete. */
  async wait(id: string, signal?: AbortSignal): Promise<NodeCommand> {
    const record = this.#commands.get(id)
    while (!record.isComplete) await record.nextChange(signal)
    return record.command
  }

  /** Data frames from byte `from` on, followed until the command has ended, then one message with the command. */
  output(id: string, asked: OutputAsked): AsyncIterable<Buffer> {
    return streamOutput(this.#commands.get(id), this.#commands.spool, asked)
  }

  async signal(id: string, name: string): Promise<void> {
    const { channel } = this.#running(id)
    await this.#ask({ op: 'signal', channel, signal: name })
  }

  /** Resolves when the command's stdin has taken all of it. Calls for one command take turns. */
  async writeStdin(id: string, bytes: AsyncIterable<Buffer>, end: boolean): Promise<void> {
    const record = this.#running(id)
    if (record.stdinSource !== 'open' || record.isStdinEnded) throw new AirlockError('stdin_closed')
    await record.stdinLock.run(id, async () => {
      const { turn } = await record.stdin.begin()
      for await (const chunk of bytes) await record.stdin.send(turn, chunk)
      await record.stdin.drain(turn)
      if (end) this.#endStdin(record)
    })
  }

  async readFile(path: string, signal?: AbortSignal): Promise<{ size: number; bytes: AsyncIterable<Buffer> }> {
    const connection = await this.#connectionSoon(signal)
    const channel = this.#commands.nextChannel()
    const download = new Download((offset) => connection.send({ type: 'ack', channel, offset }))
    const release = this.#open(connection, channel, download)
    try {
      const { size } = await this.#request(connection, { op: 'file.read', path, channel }, signal)
      // Whoever never reads must abort, or the file stays open until the guest's next connection.
      signal?.addEventListener('abort', release, { once: true })
      return { size, bytes: releasing(download.bytes(size, signal), release) }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Resolves with the number of bytes once the guest has closed the file. */
  // oxlint-disable-next-line max-params -- where, how, what, until when: the order of every file call
  async writeFile(
    path: string,
    mode: 'truncate' | 'append',
    bytes: AsyncIterable<Buffer>,
    signal?: AbortSignal,
  ): Promise<number> {
    const connection = await this.#connectionSoon(signal)
    const channel = this.#commands.nextChannel()
    const upload = new Upload({
      put: (offset, chunk) => connection.sendData({ channel, offset, bytes: chunk }),
      end: () => connection.send({ type: 'eof', channel }),
    })
    const release = this.#open(connection, channel, upload)
    try {
      await this.#request(connection, { op: 'file.write', path, mode, channel }, signal)
      return await upload.send(bytes, signal)
    } finally {
      release()
    }
  }

  async file(operation: FileOperation): Promise<GuestResults[FileOperation['op']]> {
    return await this.#ask(operation)
  }

  /** Lets go of the guest, which lives on. Whoever waits for something is told `reason`. */
  async close(reason = new AirlockError('sandbox_ended')): Promise<void> {
    this.#closed ??= reason
    clearTimeout(this.#forgetting)
    const server = this.#server
    this.#latest?.connection.destroy()
    if (server?.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
    await this.#latest?.done
    this.#commands.abandon(this.#closed)
    this.#attachment.notify()
  }

  #accept(socket: Socket): void {
    const before = this.#latest
    before?.connection.destroy()
    const connection: GuestConnection = new GuestConnection(socket, {
      hello: (states) => this.#commands.reconcile(states),
      attached: (states) => this.#attach(connection, states),
      message: (message) => this.#message(message),
      data: (frame) => this.#data(frame),
      flush: () => this.#commands.flush(),
    })
    this.#latest = { connection, done: this.#serve(connection, before?.done) }
  }

  /** The one before must have stored what it took, for the guest is told what we have. */
  async #serve(connection: GuestConnection, before: Promise<void> | undefined): Promise<void> {
    await before
    const fault = this.#closed ? undefined : await connection.run()
    connection.destroy()
    if (fault !== undefined && !this.#closed)
      this.#options.log.warn('the connection of a guest ended', { sandbox: this.#options.sandbox, fault })
    if (this.#attached !== connection) return
    this.#attached = undefined
    const lost = new AirlockError('guest_lost', 'the connection to the sandbox was lost')
    for (const transfer of this.#transfers.values()) transfer.fail(lost)
    this.#commands.interrupted()
  }

  #attach(connection: GuestConnection, states: readonly GuestCommandState[]): void {
    this.#attached = connection
    if (this.#sleptMs > 0) this.saySlept(this.#sleptMs)
    this.#attachment.notify()
    for (const { channel, end } of this.#commands.unknownAmong(states)) {
      this.#options.log.warn('a guest runs a command that nobody asked for', {
        sandbox: this.#options.sandbox,
        channel,
      })
      if (end) this.#forget(channel)
      else void this.#ask({ op: 'signal', channel, signal: 'SIGKILL' }).catch(isOver)
    }
    for (const record of this.#commands.records) {
      if (record.isStdinEnded) connection.send({ type: 'eof', channel: record.channel })
      else if (record.isRunning) void this.#feed(record)
    }
  }

  #data(frame: DataFrame): void {
    const transfer = this.#transfers.get(frame.channel)
    if (transfer) transfer.data(frame)
    else this.#commands.data(frame)
  }

  async #message(message: ChannelMessage): Promise<void> {
    const transfer = this.#transfers.get(message.channel)
    if (transfer) transfer.message(message)
    else await this.#commands.message(message)
  }

  /** Those who ask for the same thing at once get the same answer. */
  async #once(id: string, start: () => Promise<NodeCommand>): Promise<NodeCommand> {
    const starting = this.#starts.get(id)
    if (starting) return await starting
    const known = this.#commands.find(id)
    if (known) return known.command
    const started = start().finally(() => this.#starts.delete(id))
    this.#starts.set(id, started)
    return await started
  }

  async #start(spec: NodeCommandSpec): Promise<NodeCommand> {
    const record = await this.#commands.begin(spec)
    const stdin = spec.stdin === 'none' ? 'none' : 'open'
    await this.#askToStart(record, { op: 'run', command: { ...spec, stdin, channel: record.channel } })
    // A command that was asked for twice starts at the beginning all the same.
    record.stdin.acknowledge(0)
    await this.#options.failpoint('command.accepted')
    void this.#feed(record)
    return record.command
  }

  /** A guest that is not there is never asked, so nothing is left to find out about the step. */
  async #startStep(session: string, spec: NodeStepSpec): Promise<NodeCommand> {
    if (!this.#attached) await this.#connectionSoon(undefined).catch(throwUnreachable)
    const { id, timeoutMs } = spec
    const maxOutputBytes = spec.maxOutputBytes + RICH_BYTES
    const record = await this.#commands.begin({ id, timeoutMs, maxOutputBytes, stdin: 'none', session })
    await this.#askToStart(record, { op: 'step', step: { ...spec, session, channel: record.channel } })
    await this.#options.failpoint('step.accepted')
    return record.command
  }

  async #askToStart(record: CommandRecord, request: Extract<GuestRequest, { op: 'run' | 'step' }>): Promise<void> {
    try {
      await this.#ask(request)
    } catch (error) {
      // Without an answer it may run all the same: the guest's next hello tells.
      if (!isUnanswered(error)) await this.#commands.drop(record)
      throw error
    } finally {
      this.#commands.started(record)
    }
  }

  /** Asks for what belongs to an interpreter: a guest that does not answer is one that cannot be reached now. */
  async #askSession<K extends Op>(request: Extract<GuestRequest, { op: K }>): Promise<GuestResults[K]> {
    return await this.#ask(request).catch(throwUnreachable)
  }

  /** Gives a command the text that it was started with, from where the guest has it. */
  async #feed(record: CommandRecord): Promise<void> {
    if (typeof record.stdinSource === 'string' || record.isFeeding || record.isStdinEnded) return
    record.isFeeding = true
    const text = Buffer.from(record.stdinSource.text)
    try {
      const { turn, offset } = await record.stdin.begin()
      await record.stdin.send(turn, text.subarray(offset))
      await record.stdin.drain(turn)
      this.#endStdin(record)
    } catch (error) {
      // A command need not read what it is given; a lost connection feeds the rest when it is back.
      this.#options.log.debug('stdin was not taken whole', { command: record.id, error })
    } finally {
      record.isFeeding = false
    }
  }

  #endStdin(record: CommandRecord): void {
    record.isStdinEnded = true
    this.#attached?.send({ type: 'eof', channel: record.channel })
  }

  #running(id: string): CommandRecord {
    const record = this.#commands.get(id)
    if (!record.isRunning) throw new AirlockError('command_ended')
    return record
  }

  /** Makes a channel; the function that is returned gives it up, whatever state it is in. */
  #open(connection: GuestConnection, channel: number, transfer: FileTransfer): () => void {
    this.#transfers.set(channel, transfer)
    return () => {
      if (this.#transfers.delete(channel)) connection.send({ type: 'cancel', channel })
    }
  }

  /** There is no hurry: several go together. */
  #forget(channel: number): void {
    this.#forgotten.push(channel)
    if (this.#forgotten.length >= FORGET_AT_ONCE) this.#sendForgotten()
    else this.#forgetting ??= setTimeout(() => this.#sendForgotten(), FORGET_MS).unref()
  }

  #sendForgotten(): void {
    clearTimeout(this.#forgetting)
    this.#forgetting = undefined
    for (const channel of this.#forgotten.splice(0))
      void this.#attached?.request({ op: 'forget', channel }, undefined).catch(isOver)
  }

  /** Asks, and where asking twice is harmless asks again over a new connection when the old one was lost. */
  async #ask<K extends Op>(request: Extract<GuestRequest, { op: K }>): Promise<GuestResults[K]> {
    const ask = async (limit: AbortSignal | undefined) => {
      for (;;) {
        const connection = this.#attached ?? (await this.#connectionSoon(limit))
        try {
          return await connection.request(request, limit)
        } catch (error) {
          if (!isAirlockError(error) || error.code !== 'guest_lost' || !REPEATABLE.has(request.op)) throw error
        }
      }
    }
    return await withinDeadline(ask, { ms: ANSWER_MS })
  }

  async #request<K extends Op>(
    connection: GuestConnection,
    request: Extract<GuestRequest, { op: K }>,
    signal: AbortSignal | undefined,
  ): Promise<GuestResults[K]> {
    return await withinDeadline((limit) => connection.request(request, limit), { ms: ANSWER_MS, signal })
  }

  /** The living connection; a guest that went away gets a moment to come back. */
  async #connectionSoon(signal: AbortSignal | undefined): Promise<GuestConnection> {
    try {
      return await withinDeadline((limit) => this.#connection(limit), { ms: REATTACH_MS, signal })
    } catch (error) {
      if (!isAirlockError(error) || error.code !== 'timeout') throw error
      throw new AirlockError('guest_lost', 'the sandbox does not answer', { cause: error })
    }
  }

  async #connection(signal: AbortSignal | undefined): Promise<GuestConnection> {
    for (;;) {
      if (this.#closed) throw this.#closed
      if (this.#attached) return this.#attached
      await this.#attachment.wait(signal)
    }
  }
}

/** A second time does no more than the first. */
const REPEATABLE: ReadonlySet<Op> = new Set<Op>([
  'ping',
  'token',
  'run',
  'step',
  'forget',
  'session.open',
  'session.list',
  'session.close',
  'file.stat',
  'file.list',
])

function throwUnreachable(cause: unknown): never {
  if (!isAirlockError(cause) || !['guest_lost', 'timeout'].includes(cause.code)) throw cause
  throw new AirlockError('runtime_unreachable', undefined, { cause })
}

function isUnanswered(error: unknown): boolean {
  return isAirlockError(error) && ['guest_lost', 'timeout', 'sandbox_ended'].includes(error.code)
}

/** For what is asked again at the next attachment anyway. */
function isOver(): void {}

async function* releasing(bytes: AsyncIterable<Buffer>, release: () => void): AsyncGenerator<Buffer> {
  try {
    yield* bytes
  } finally {
    release()
  }
}
