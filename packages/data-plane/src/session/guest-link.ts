import { AirlockError, type Failpoint, type NodeToken } from '@airlock/contract'
import type { GuestCommandState } from '@airlock/contract/guest'
import type { Clock, Log } from '@airlock/std'
import { CommandTable, type OutputBounds } from './command-table.ts'
import type { Strain } from './end-cause.ts'
import { Forgetting } from './forgetting.ts'
import { GuestCommands } from './guest-commands.ts'
import type { ChannelMessage, DataFrame, GuestConnection } from './guest-connection.ts'
import { GuestFiles } from './guest-files.ts'
import type { GuestListener } from './guest-listener.ts'
import { GuestSessions } from './guest-sessions.ts'
import { GuestWire } from './guest-wire.ts'
import { PATIENCE, type Patience } from './patience.ts'
import type { GroupUsage } from './spool.ts'
import { Starts } from './starts.ts'
import type { VaultShare } from '../vault/vault.ts'

export interface GuestLinkOptions {
  readonly sandbox: string
  /** Where the guest comes in. */
  readonly listener: GuestListener
  /** Where commands and their output are kept, beyond the life of this process. */
  readonly spoolDir: string
  /** Where outputs are kept whole that were too much. */
  readonly vault: VaultShare
  readonly outputBounds?: OutputBounds
  /** `PATIENCE`, unless a test says otherwise. */
  readonly patience?: Patience
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  onOverdue(commandId: string): void
  /** What the group of a session has used, read outside; null where it cannot be told. */
  usageOf(session: string): Promise<GroupUsage | null>
  /** What user code has run into so far; cheap, read outside; null where it cannot be told. */
  strainOf(session: string | undefined): Promise<Strain | null>
  /** Whether something that user code writes to has no room left, looked at outside. */
  isDiskFull(): Promise<boolean>
}

/**
 * Our side of one guest, which dials: what it is asked for is in its parts. Commands and their output are in the spool, so
 * neither a lost connection nor the death of this process loses any of them.
 */
export class GuestLink {
  readonly commands: GuestCommands
  readonly sessions: GuestSessions
  readonly files: GuestFiles
  readonly #options: GuestLinkOptions
  readonly #table: CommandTable
  readonly #wire: GuestWire
  readonly #forgetting: Forgetting
  /** How long the sandbox was paused in all. */
  #sleptMs = 0

  constructor(options: GuestLinkOptions) {
    this.#options = options
    this.#forgetting = new Forgetting(
      (channel) => void this.#wire.attached?.request({ op: 'forget', channel }, undefined).catch(isOver),
    )
    this.#table = this.#newTable()
    this.#wire = this.#newWire()
    const common = { ...options, patience: options.patience ?? PATIENCE, table: this.#table, wire: this.#wire }
    const parts = { ...common, starts: new Starts(common) }
    this.commands = new GuestCommands(parts)
    this.sessions = new GuestSessions(parts)
    this.files = new GuestFiles(this.#wire, () => this.#table.nextChannel())
  }

  /** Finds what an earlier process left in the spool, then lets the guest in. */
  async listen(): Promise<void> {
    await this.#table.load()
    await this.#wire.listen()
  }

  get isAttached(): boolean {
    return this.#wire.attached !== undefined
  }

  /** Its processes stand still, or are about to: deadlines do not run on. */
  hold(): void {
    this.#table.hold()
  }

  /** Gives everything that runs the time back that it was paused, `sleptMs` in all by now. Precondition: it still is. */
  release(pausedMs: number, sleptMs: number): void {
    this.saySlept(sleptMs)
    this.#table.release(pausedMs)
  }

  /** The guest reads it before anything that is due by its own clock. */
  saySlept(sleptMs: number): void {
    this.#sleptMs = Math.max(this.#sleptMs, Math.round(sleptMs))
    this.#wire.attached?.send({ type: 'slept', totalMs: this.#sleptMs })
  }

  async waitForGuest(signal?: AbortSignal): Promise<void> {
    await this.#wire.connection(signal)
  }

  /** For the doors of the sandbox; the guest writes it where programs read it, and renews it from then on. */
  async giveToken(given: NodeToken): Promise<void> {
    await this.#wire.ask({ op: 'token', ...given })
  }

  /** Lets go of the guest, which lives on. Whoever waits for something is told `reason`. */
  async close(reason = new AirlockError('sandbox_ended')): Promise<void> {
    this.#forgetting.close()
    this.#table.abandon(await this.#wire.close(reason))
  }

  #newTable(): CommandTable {
    const options = this.#options
    return new CommandTable({
      ...options,
      patience: options.patience ?? PATIENCE,
      onOverdue: (id) => options.onOverdue(id),
      usageOf: (session) => options.usageOf(session),
      strainOf: (session) => options.strainOf(session),
      isDiskFull: () => options.isDiskFull(),
      put: (data) => this.#wire.attached?.sendData(data),
      acknowledge: (channel, offset) => this.#wire.attached?.send({ type: 'ack', channel, offset }),
      forget: (channel) => this.#forgetting.add(channel),
      kill: async (channel, ms) => void (await this.#wire.ask({ op: 'signal', channel, signal: 'SIGKILL' }, ms)),
    })
  }

  #newWire(): GuestWire {
    return new GuestWire({
      ...this.#options,
      hello: (states) => this.#table.reconcile(states),
      attached: (connection, states) => this.#attached(connection, states),
      message: (message) => this.#message(message),
      data: (frame) => this.#data(frame),
      flush: () => this.#table.flush(),
      detached: (lost) => {
        this.files.detached(lost)
        this.#table.interrupted()
      },
    })
  }

  #attached(connection: GuestConnection, states: readonly GuestCommandState[]): void {
    const { log, sandbox } = this.#options
    if (this.#sleptMs > 0) this.saySlept(this.#sleptMs)
    for (const { channel, end } of this.#table.unfollowedAmong(states)) {
      log.warn('ending a command of a guest that nobody follows', { sandbox, channel })
      if (end) this.#forgetting.add(channel)
      else void this.#wire.ask({ op: 'signal', channel, signal: 'SIGKILL' }).catch(isOver)
    }
    this.commands.attached(connection)
  }

  #data(frame: DataFrame): void {
    const transfer = this.files.transferOn(frame.channel)
    if (transfer) transfer.data(frame)
    else this.#table.data(frame)
  }

  async #message(message: ChannelMessage): Promise<void> {
    const transfer = this.files.transferOn(message.channel)
    if (transfer) transfer.message(message)
    else await this.#table.message(message)
  }
}

/** For what is asked again at the next attachment anyway. */
function isOver(): void {}
