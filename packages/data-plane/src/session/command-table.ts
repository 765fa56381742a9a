import { AirlockError, BOUNDS, type Failpoint, type NodeCommandSpec } from '@airlock/contract'
import { FrameError, type GuestCommandState } from '@airlock/contract/guest'
import type { Clock, Log } from '@airlock/std'
import { CommandRecord } from './command-record.ts'
import type { ChannelMessage, DataFrame } from './guest-connection.ts'
import { SendWindow } from './send-window.ts'
import { Spool } from './spool.ts'

/** How much longer than its own deadline a command may live before somebody outside ends it. */
const OVERDUE_MS = 5000

export interface CommandTableOptions {
  readonly spoolDir: string
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  /** A command that outlived its deadline: its guest does not keep it, so the sandbox cannot be trusted to. */
  onOverdue(commandId: string): void
  put(data: { readonly channel: number; readonly offset: number; readonly bytes: Buffer }): void
  acknowledge(channel: number, offset: number): void
  /** The guest need not remember it any longer. */
  forget(channel: number): void
}

/** The commands of one sandbox, in memory and in the spool. */
export class CommandTable {
  readonly spool: Spool
  readonly #options: CommandTableOptions
  readonly #records = new Map<string, CommandRecord>()
  readonly #byChannel = new Map<number, CommandRecord>()
  readonly #overdue = new Map<string, NodeJS.Timeout>()
  /** Asked for, not yet answered: a guest that does not know them has not lost them. */
  readonly #starting = new Set<CommandRecord>()
  readonly #dirty = new Set<CommandRecord>()
  #lastChannel = 0

  constructor(options: CommandTableOptions) {
    this.#options = options
    this.spool = new Spool(options.spoolDir, options.log)
  }

  async load(): Promise<void> {
    for (const spooled of await this.spool.load()) {
      const record = new CommandRecord(spooled, this.#windowOf(spooled.meta.channel, 'unknown'))
      this.#lastChannel = Math.max(this.#lastChannel, record.channel)
      this.#add(record)
    }
  }

  nextChannel(): number {
    return ++this.#lastChannel
  }

  find(id: string): CommandRecord | undefined {
    return this.#records.get(id)
  }

  get(id: string): CommandRecord {
    const record = this.#records.get(id)
    if (!record) throw new AirlockError('command_not_found')
    return record
  }

  get records(): readonly CommandRecord[] {
    return [...this.#records.values()]
  }

  get runningCount(): number {
    return this.records.filter((record) => record.isRunning).length
  }

  /** Remembers a command on disk before anybody is asked to start it. */
  async begin(spec: NodeCommandSpec): Promise<CommandRecord> {
    if (this.runningCount >= BOUNDS.commands) throw new AirlockError('too_many_commands')
    const record = this.#newRecord(spec)
    this.#starting.add(record)
    this.#add(record)
    try {
      await this.spool.save(record.meta)
    } catch (error) {
      await this.drop(record)
      throw error
    }
    return record
  }

  started(record: CommandRecord): void {
    this.#starting.delete(record)
  }

  /** As if it had never been asked for. */
  async drop(record: CommandRecord): Promise<void> {
    this.#starting.delete(record)
    this.#records.delete(record.id)
    this.#byChannel.delete(record.channel)
    this.#clearOverdue(record.id)
    await this.spool.remove(record.id)
  }

  /** Compares with what a guest says it has; what it lost is lost. Answers what we have of the rest. */
  async reconcile(states: readonly GuestCommandState[]): Promise<readonly { channel: number; offset: number }[]> {
    const known = new Set(states.map(({ id, channel }) => `${id} ${channel}`))
    for (const record of this.records) {
      const isLost = !record.isComplete && !this.#starting.has(record) && !known.has(`${record.id} ${record.channel}`)
      if (!isLost) continue
      record.lost(this.#options.clock.now())
      await this.#finish(record)
    }
    return this.records.map(({ channel, received: offset }) => ({ channel, offset }))
  }

  /** Channels on which the guest has a command that we do not know. */
  unknownAmong(states: readonly GuestCommandState[]): readonly GuestCommandState[] {
    return states.filter(({ id, channel }) => this.#byChannel.get(channel)?.id !== id)
  }

  data(frame: DataFrame): void {
    const record = this.#byChannel.get(frame.channel)
    if (!record) return
    record.stage(frame)
    this.#dirty.add(record)
  }

  async flush(): Promise<void> {
    for (const record of this.#dirty) {
      this.#dirty.delete(record)
      const offset = await record.flush(this.spool)
      if (offset !== undefined) this.#options.acknowledge(record.channel, offset)
    }
  }

  async message(message: ChannelMessage): Promise<void> {
    const record = this.#byChannel.get(message.channel)
    if (!record) {
      if (message.type === 'closed') this.#options.forget(message.channel)
    } else if (message.type === 'ack') record.stdin.acknowledge(message.offset)
    else if (message.type === 'broken') record.stdin.fail(new AirlockError(message.error.code, message.error.message))
    else if (message.type === 'exited') await this.#exited(record, message)
    else if (message.type === 'closed') await this.#closed(record, message)
    else throw new FrameError(`${message.type} of a command`)
  }

  interrupted(): void {
    for (const record of this.records) record.stdin.interrupt()
  }

  abandon(error: AirlockError): void {
    for (const record of this.records) {
      record.abandon(error)
      this.#clearOverdue(record.id)
    }
  }

  async #exited(record: CommandRecord, { end }: Extract<ChannelMessage, { type: 'exited' }>): Promise<void> {
    if (!record.isRunning) return
    record.exited(end, this.#options.clock.now())
    record.stdin.fail(new AirlockError('command_ended'))
    await this.#save(record)
  }

  async #closed(record: CommandRecord, message: Extract<ChannelMessage, { type: 'closed' }>): Promise<void> {
    if (record.isRunning) throw new FrameError('closed before exited')
    if (!record.isComplete) {
      record.closed(message.truncated)
      await this.#finish(record)
      await this.#options.failpoint('command.exited')
    }
    this.#options.forget(record.channel)
  }

  async #finish(record: CommandRecord): Promise<void> {
    this.#clearOverdue(record.id)
    await this.#save(record)
    const ended = this.records.filter(({ isComplete }) => isComplete)
    const byAge = ended.toSorted((a, b) => (a.command.endedAt ?? 0) - (b.command.endedAt ?? 0))
    for (const old of byAge.slice(0, -BOUNDS.endedCommands)) await this.drop(old)
  }

  /** The end of a command is true even when our disk is full; after a restart the guest says it again. */
  async #save(record: CommandRecord): Promise<void> {
    try {
      await this.spool.save(record.meta)
    } catch (error) {
      this.#options.log.error('the state of a command was not saved', { command: record.id, error })
    }
  }

  #newRecord(spec: NodeCommandSpec): CommandRecord {
    const channel = this.nextChannel()
    const command = {
      id: spec.id,
      state: 'running',
      exitCode: null,
      signal: null,
      timedOut: false,
      truncated: false,
      outputBytes: 0,
      startedAt: this.#options.clock.now(),
      endedAt: null,
    } as const
    const { timeoutMs, maxOutputBytes, stdin } = spec
    const meta = { channel, timeoutMs, maxOutputBytes, stdin, complete: false, command }
    return new CommandRecord({ meta, outputBytes: 0, fileBytes: 0 }, this.#windowOf(channel, 'fresh'))
  }

  #windowOf(channel: number, start: 'fresh' | 'unknown'): SendWindow {
    const put = (offset: number, bytes: Buffer) => this.#options.put({ channel, offset, bytes })
    return new SendWindow({ start, patienceMs: undefined, put })
  }

  #add(record: CommandRecord): void {
    this.#records.set(record.id, record)
    this.#byChannel.set(record.channel, record)
    if (record.isComplete) return
    const waitMs = Math.max(0, record.deadlineMs + OVERDUE_MS - this.#options.clock.now())
    this.#overdue.set(record.id, setTimeout(() => this.#options.onOverdue(record.id), waitMs).unref())
  }

  #clearOverdue(id: string): void {
    clearTimeout(this.#overdue.get(id))
    this.#overdue.delete(id)
  }
}
