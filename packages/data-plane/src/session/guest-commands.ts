import { AirlockError, type Failpoint, type NodeCommand, type NodeCommandSpec } from '@airlock/contract'
import { EVENT_OUTPUT_BYTES, type GuestCommandSpec } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'
import type { CommandRecord } from './command-record.ts'
import type { CommandTable } from './command-table.ts'
import type { GuestConnection } from './guest-connection.ts'
import type { GuestWire } from './guest-wire.ts'
import { type OutputAsked, streamOutput } from './output-stream.ts'
import type { Starts } from './starts.ts'

export interface GuestCommandsOptions {
  readonly wire: GuestWire
  readonly table: CommandTable
  readonly starts: Starts
  readonly log: Log
  readonly failpoint: Failpoint
}

/** The commands of one guest. What is read here is also there of steps. */
export class GuestCommands {
  readonly #options: GuestCommandsOptions

  constructor(options: GuestCommandsOptions) {
    this.#options = options
  }

  get runningCount(): number {
    return this.#options.table.runningCount
  }

  /** Starts a command. Idempotent: an id that is known is answered as it is. */
  async run(spec: NodeCommandSpec): Promise<NodeCommand> {
    return await this.#options.starts.once(spec.id, () => this.#start(spec))
  }

  get(id: string): NodeCommand {
    return this.#options.table.get(id).command
  }

  list(): readonly NodeCommand[] {
    return this.#options.table.records.map(({ command }) => command).toSorted((a, b) => a.startedAt - b.startedAt)
  }

  /** Resolves once the command has ended and its output is complete. */
  async wait(id: string, signal?: AbortSignal): Promise<NodeCommand> {
    const record = this.#options.table.get(id)
    while (!record.isComplete) await record.nextChange(signal)
    return record.command
  }

  /** Data frames from byte `from` on, followed until the command has ended, then one message with the command. */
  output(id: string, asked: OutputAsked): AsyncIterable<Buffer> {
    const { table } = this.#options
    return streamOutput(table.get(id), table.spool, asked)
  }

  async signal(id: string, name: string): Promise<void> {
    const { channel } = await this.#started(id)
    await this.#options.wire.ask({ op: 'signal', channel, signal: name })
  }

  /** Resolves when the command's stdin has taken all of it. Calls for one command take turns. */
  async writeStdin(id: string, bytes: AsyncIterable<Buffer>, end: boolean): Promise<void> {
    const record = await this.#started(id)
    if (record.stdinSource !== 'open' || record.isStdinEnded) throw new AirlockError('stdin_closed')
    await record.stdinLock.run(id, async () => {
      const { turn } = await record.stdin.begin()
      for await (const chunk of bytes) await record.stdin.send(turn, chunk)
      await record.stdin.drain(turn)
      if (end) this.#endStdin(record)
    })
  }

  /** What was said beyond caps outlives the sandbox from here on. */
  async keepOutputs(signal: AbortSignal): Promise<void> {
    await this.#options.table.keepOutputs(signal)
  }

  /** The guest is back: it gets the rest of every stdin. */
  attached(connection: GuestConnection): void {
    const { table } = this.#options
    for (const record of table.records) {
      // One that is being started is fed once the guest has it: before that, its text would be for nobody.
      if (table.isStarting(record)) continue
      if (record.isStdinEnded) connection.send({ type: 'eof', channel: record.channel })
      else if (record.isRunning) void this.#feed(record)
    }
  }

  async #start(spec: NodeCommandSpec): Promise<NodeCommand> {
    const { table, starts, failpoint } = this.#options
    const eventBytes = spec.eventOutput ? EVENT_OUTPUT_BYTES : 0
    const record = await table.begin({ ...spec, maxOutputBytes: spec.maxOutputBytes + eventBytes })
    const stdin: GuestCommandSpec['stdin'] = spec.stdin === 'none' ? 'none' : 'open'
    // With an event output the guest keeps each cap by itself: what prints too much takes nothing from the events.
    const maxOutputBytes = spec.eventOutput ? spec.maxOutputBytes : table.guestCap(spec.maxOutputBytes)
    const command = { ...spec, stdin, maxOutputBytes, channel: record.channel }
    await starts.ask(record, { op: 'run', command }, async () => {
      // A command that was asked for twice starts at the beginning all the same.
      record.stdin.acknowledge(0)
      await failpoint('command.accepted')
      void this.#feed(record)
    })
    return record.command
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
    this.#options.wire.attached?.send({ type: 'eof', channel: record.channel })
  }

  /** One that runs, in a guest that knows it. */
  async #started(id: string): Promise<CommandRecord> {
    const { table, starts } = this.#options
    await starts.answered(table.get(id))
    const record = table.get(id)
    if (!record.isRunning) throw new AirlockError('command_ended')
    return record
  }
}
