import {
  AirlockError,
  BOUNDS,
  type EndCause,
  type Failpoint,
  type KeptOutput,
  type NodeCommandSpec,
  type ResourceUsage,
} from '@airlock/contract'
import { FrameError, type GuestCommandEnd, type GuestCommandState } from '@airlock/contract/guest'
import type { Clock, Log } from '@airlock/std'
import { CommandRecord } from './command-record.ts'
import { Deadlines } from './deadlines.ts'
import { causeOf, endedWell, type Strain } from './end-cause.ts'
import { FULL_OUTPUT_BYTES, FullOutputs } from './full-output.ts'
import type { ChannelMessage, DataFrame } from './guest-connection.ts'
import type { Patience } from './patience.ts'
import { SendWindow } from './send-window.ts'
import { type GroupUsage, Spool, type SpooledCommand } from './spool.ts'
import type { VaultShare } from '../vault/vault.ts'

/** A start that was answered later than this is written down again, for the deadline that the next process reads. */
const LATE_MS = 1000

/** What the table must know of a command or a step. */
export interface Begun extends Pick<
  NodeCommandSpec,
  'timeoutMs' | 'maxOutputBytes' | 'stdin' | 'limits' | 'eventOutput'
> {
  readonly id: string
  /** Of a step: the session in which it takes its turn. */
  readonly session?: string
}

/** How much output of a sandbox is kept on the host. */
export interface OutputBounds {
  readonly endedOutputBytes: number
  readonly runningOutputBytes: number
}

export interface CommandTableOptions {
  readonly spoolDir: string
  /** Where outputs are kept whole that were too much. */
  readonly vault: VaultShare
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  readonly patience: Patience
  /** A command that outlived its deadline: its guest does not keep it, so the sandbox cannot be trusted to. */
  onOverdue(commandId: string): void
  /** What the group of a session has used, read outside; null where it cannot be told. */
  usageOf(session: string): Promise<GroupUsage | null>
  /** What user code has run into so far, as far as it can be told of a command or of that session; cheap, read outside. */
  strainOf(session: string | undefined): Promise<Strain | null>
  /** Whether something that user code writes to has no room left, looked at outside. */
  isDiskFull(): Promise<boolean>
  /** Of what is kept; those of the contract, unless a test says otherwise. */
  readonly outputBounds?: OutputBounds
  put(data: { readonly channel: number; readonly offset: number; readonly bytes: Buffer }): void
  acknowledge(channel: number, offset: number): void
  /** The guest need not remember it any longer. */
  forget(channel: number): void
  /** Has the guest kill it. Resolves with the answer, rejects with `timeout` after `ms`. */
  kill(channel: number, ms: number): Promise<void>
}

/** The commands of one sandbox and the steps of its sessions, in memory and in the spool. */
export class CommandTable {
  readonly spool: Spool
  readonly #options: CommandTableOptions
  readonly #full: FullOutputs
  readonly #bounds: OutputBounds
  readonly #records = new Map<string, CommandRecord>()
  readonly #byChannel = new Map<number, CommandRecord>()
  readonly #deadlines: Deadlines
  /** Asked for, not yet answered: a guest that does not know them has not lost them. */
  readonly #starting = new Set<CommandRecord>()
  readonly #dirty = new Set<CommandRecord>()
  /** What has not ended, in the order of channels. */
  readonly #unended = new Set<CommandRecord>()
  /** What has, by session; commands are nobody's. */
  readonly #ended = new Map<string | undefined, Ended>()
  #lastChannel = 0

  constructor(options: CommandTableOptions) {
    this.#options = options
    this.#bounds = options.outputBounds ?? BOUNDS
    this.spool = new Spool(options.spoolDir, options.log)
    this.#full = new FullOutputs(options.spoolDir, options.vault)
    this.#deadlines = new Deadlines({
      ...options,
      kill: async (channel, ms) => options.kill(channel, ms),
      onLostStart: (record) =>
        void this.lose(record).catch((error: unknown) =>
          options.log.error('could not end a command whose start was not answered', { command: record.id, error }),
        ),
      onOverdue: (record) => this.#giveUp(record),
    })
  }

  async load(): Promise<void> {
    for (const spooled of byAge(await this.spool.load())) {
      const { complete, command } = spooled.meta
      if (complete && spooled.outputBytes < command.outputBytes) {
        const { id, outputBytes: said } = command
        this.#options.log.error('a part of the output of a command is lost', { id, said, left: spooled.outputBytes })
      }
      const receivedBytes = await this.#receivedOf(spooled)
      const record = this.#recordOf({ ...spooled, receivedBytes }, 'unknown')
      this.#lastChannel = Math.max(this.#lastChannel, record.channel)
      this.#add(record)
    }
    for (const { session } of this.#unended) if (session !== undefined) await this.#nextTurn(session)
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
    return [...this.#unended].filter((record) => record.isRunning).length
  }

  /** Remembers a command on disk before anybody is asked to start it. */
  async begin(spec: Begun): Promise<CommandRecord> {
    this.#throwOnTooMany(spec.session)
    this.#throwOnTooMuch(spec)
    const record = this.#newRecord(spec)
    this.#starting.add(record)
    this.#add(record)
    try {
      if (spec.session === undefined) record.beginStrain(await this.#options.strainOf(undefined))
      else await this.#nextTurn(spec.session)
      this.spool.save(record.meta)
    } catch (error) {
      await this.drop(record)
      throw error
    }
    return record
  }

  /** The guest may not know of it yet. */
  isStarting(record: CommandRecord): boolean {
    return this.#starting.has(record)
  }

  /** The guest has started it. Its deadline counts from here; that of a step from its turn, where that comes later. */
  answered(record: CommandRecord): void {
    this.#starting.delete(record)
    if (record.isComplete || record.isWaiting) return
    const lateMs = Math.max(0, Math.ceil(this.#options.clock.now() - record.command.startedAt))
    record.extend(lateMs)
    if (lateMs > LATE_MS) this.#save(record)
    this.#watch(record)
  }

  /** Nobody can say what became of it, and its guest is not asked any more. */
  async lose(record: CommandRecord): Promise<void> {
    this.#starting.delete(record)
    if (record.isComplete) return
    record.lost(this.#options.clock.now(), { full: await this.#keepFull(record, 'unknown') })
    await this.#finish(record)
  }

  /** How much the guest is to say of a command: more than its caller wants, for the full output, unless that is nothing. */
  guestCap(maxOutputBytes: number): number {
    return maxOutputBytes === 0 ? 0 : Math.max(maxOutputBytes, FULL_OUTPUT_BYTES)
  }

  /** The sandbox ends: of what has not ended, what was said beyond its cap is kept. */
  async keepOutputs(signal: AbortSignal): Promise<void> {
    for (const record of this.records) {
      signal.throwIfAborted()
      if (record.isOver) await this.#keepFull(record, 'unknown')
    }
  }

  /** As if it had never been asked for. */
  async drop(record: CommandRecord): Promise<void> {
    this.#starting.delete(record)
    this.#unended.delete(record)
    this.#records.delete(record.id)
    this.#byChannel.delete(record.channel)
    this.#deadlines.clear(record)
    this.spool.remove(record.id)
    await this.#full.drop(record.id)
    if (record.session !== undefined && !record.isComplete) await this.#nextTurn(record.session)
  }

  /** Compares with what a guest says it has; what it lost is lost. Answers what we have of the rest. */
  async reconcile(states: readonly GuestCommandState[]): Promise<readonly { channel: number; offset: number }[]> {
    const known = new Set(states.map(({ id, channel }) => `${id} ${channel}`))
    for (const record of this.records) {
      const isLost = !record.isComplete && !this.#starting.has(record) && !known.has(`${record.id} ${record.channel}`)
      if (isLost) await this.lose(record)
    }
    for (const record of this.#unended) await record.settle(this.spool)
    return this.records.map(({ channel, received: offset }) => ({ channel, offset }))
  }

  /** What the guest has and nobody here waits for: commands that are not known, and those that run though they were given up. */
  unfollowedAmong(states: readonly GuestCommandState[]): readonly GuestCommandState[] {
    return states.filter(({ id, channel, end }) => {
      const record = this.#byChannel.get(channel)
      return record?.id !== id || (record.isLost && end === null)
    })
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

  /** The sandbox is paused: nothing is overdue until `release`. */
  hold(): void {
    this.#deadlines.hold()
  }

  /** Everything that runs gets the time back. */
  release(pausedMs: number): void {
    this.#deadlines.release()
    for (const record of this.#unended) {
      if (record.isWaiting) continue
      if (!this.#starting.has(record)) {
        record.extend(Math.ceil(pausedMs))
        this.#save(record)
      }
      this.#watch(record)
    }
  }

  interrupted(): void {
    for (const record of this.records) record.stdin.interrupt()
  }

  abandon(error: AirlockError): void {
    for (const record of this.records) {
      record.abandon(error)
      this.#deadlines.clear(record)
    }
    this.spool.close()
  }

  async #exited(record: CommandRecord, message: Extract<ChannelMessage, { type: 'exited' }>): Promise<void> {
    if (!record.isRunning) return
    const isTimeout = message.end.signal !== null && this.#deadlines.hasKilled(record)
    const end = isTimeout ? { ...message.end, timedOut: true } : message.end
    const endedAt = this.#options.clock.now()
    const usage = await this.#usedBy(record)
    const cause = endedWell(end) ? 'exit' : await this.#causeOf(record, end)
    record.exited(end, { endedAt, usage, cause })
    if (record.stdinSource !== 'none') record.stdin.fail(new AirlockError('command_ended'))
    // The end of its output is at hand and is saved with it; should we die before, the guest says both again.
  }

  async #closed(record: CommandRecord, message: Extract<ChannelMessage, { type: 'closed' }>): Promise<void> {
    if (record.isRunning) throw new FrameError('closed before exited')
    if (!record.isComplete) {
      const isCut = message.truncated || message.produced > record.command.outputBytes
      const full = isCut ? await this.#keepFull(record, message.truncated ? 'unknown' : message.produced) : null
      record.closed(isCut, full)
      await this.#finish(record)
      if (record.session === undefined) await this.#options.failpoint('command.exited')
      else await this.#options.failpoint('step.exited')
    }
    this.#options.forget(record.channel)
  }

  async #finish(record: CommandRecord): Promise<void> {
    this.#deadlines.clear(record)
    this.#save(record)
    const { records } = this.#retire(record)
    if (record.session !== undefined) await this.#nextTurn(record.session)
    const kept = record.session === undefined ? BOUNDS.endedCommands : BOUNDS.endedSteps
    for (const old of records) {
      if (records.size <= kept) break
      records.delete(old)
      await this.drop(old)
    }
    await this.#dropOutput(record)
  }

  /** Oldest first, until what is kept of the whole sandbox is within its bound; the last one stays. */
  async #dropOutput(last: CommandRecord): Promise<void> {
    const ended = [...this.#ended.values()].flatMap(({ records }) => [...records])
    let total = ended.reduce((sum, { fileBytes }) => sum + fileBytes, 0)
    if (total <= this.#bounds.endedOutputBytes) return
    for (const old of ended.toSorted((a, b) => (a.command.endedAt ?? 0) - (b.command.endedAt ?? 0))) {
      if (total <= this.#bounds.endedOutputBytes) return
      if (old === last) continue
      total -= old.fileBytes
      this.#ended.get(old.session)?.records.delete(old)
      await this.drop(old)
    }
  }

  #retire(record: CommandRecord): Ended {
    this.#unended.delete(record)
    const ended = this.#ended.get(record.session) ?? { records: new Set(), lastAt: 0 }
    this.#ended.set(record.session, ended)
    ended.records.add(record)
    ended.lastAt = record.command.endedAt ?? 0
    return ended
  }

  /** A session runs one step at a time, in the order in which they came: the first that has not ended has the turn. */
  async #nextTurn(session: string): Promise<void> {
    const [next] = this.#unendedOf(session)
    if (!next?.isWaiting) return
    const [used, strain] = await Promise.all([this.#options.usageOf(session), this.#options.strainOf(session)])
    next.begin(this.#options.clock.now(), used, strain)
    this.#watch(next)
  }

  #unendedOf(session: string | undefined): readonly CommandRecord[] {
    return [...this.#unended].filter((record) => record.session === session)
  }

  /** What a step used: the difference of its session's group, where nothing else was counted with it. */
  async #usedBy(record: CommandRecord): Promise<ResourceUsage | null> {
    const { before, session } = record
    if (session === undefined || !before) return null
    const after = await this.#options.usageOf(session)
    if (!after || (after.isWhole && this.#hadCompany(record))) return null
    const cpuMs = after.cpuMs === null || before.cpuMs === null ? null : after.cpuMs - before.cpuMs
    // An interpreter that was started anew may be in a new group, which has used less.
    const used = cpuMs === null ? null : Math.round(Math.max(0, cpuMs) * 1000) / 1000
    return { cpuMs: used, memoryPeakBytes: after.memoryPeakBytes }
  }

  async #causeOf(record: CommandRecord, end: GuestCommandEnd): Promise<EndCause> {
    const { strain: before, cpuSeconds, session, command } = record
    const ranMs = this.#options.clock.now() - command.startedAt
    const isDiskFull = () => this.#options.isDiskFull()
    const after = await this.#options.strainOf(session)
    return await causeOf(end, { before, after, cpuSeconds, ranMs, isDiskFull })
  }

  /** Whether anything of another session, or a command, ran while this did. */
  #hadCompany({ session, command: { startedAt } }: CommandRecord): boolean {
    if ([...this.#unended].some((other) => other.session !== session)) return true
    const others = [...this.#ended].filter(([owner]) => owner !== session)
    return others.some(([, { lastAt }]) => lastAt >= startedAt)
  }

  #throwOnTooMany(session: string | undefined): void {
    const running = this.#unendedOf(session).filter(({ isRunning }) => isRunning).length
    if (session === undefined && running >= BOUNDS.commands) throw new AirlockError('too_many_commands')
    // One runs, the others wait.
    if (session !== undefined && running > BOUNDS.waitingSteps) throw new AirlockError('too_many_steps')
  }

  /** What runs may say so much together. Of a session one step at a time does. */
  #throwOnTooMuch({ session, maxOutputBytes }: Begun): void {
    const bySession = Map.groupBy(this.#unended, (record) => record.session)
    const most = [...bySession].map(([of, records]) => {
      const each = records.map(({ meta }) => meta.maxOutputBytes)
      return of === undefined ? each.reduce((sum, bytes) => sum + bytes, 0) : Math.max(...each)
    })
    const promised = most.reduce((sum, bytes) => sum + bytes, maxOutputBytes)
    if (promised <= this.#bounds.runningOutputBytes) return
    const message = `What runs in the sandbox may say more than ${this.#bounds.runningOutputBytes} bytes together.`
    throw new AirlockError(session === undefined ? 'too_many_commands' : 'too_many_steps', message, {
      hint: 'Wait until some end, or lower maxOutputBytes.',
    })
  }

  /** The end of a command is true even when our disk is full; after a restart the guest says it again. */
  #save(record: CommandRecord): void {
    try {
      this.spool.save(record.meta)
    } catch (error) {
      this.#options.log.error('the state of a command was not saved', { command: record.id, error })
    }
  }

  #newRecord(spec: Begun): CommandRecord {
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
    const { timeoutMs, maxOutputBytes, stdin, eventOutput, session, limits: { cpuSeconds } = {} } = spec
    const own = {
      ...(session === undefined ? {} : { session }),
      ...(cpuSeconds === undefined ? {} : { cpuSeconds }),
      ...(eventOutput && { eventOutput }),
    }
    const meta = { channel, timeoutMs, maxOutputBytes, stdin, complete: false, command, ...own }
    return this.#recordOf({ meta, outputBytes: 0, fileBytes: 0, receivedBytes: 0 }, 'fresh')
  }

  #recordOf(spooled: SpooledCommand, start: 'fresh' | 'unknown'): CommandRecord {
    const { channel, session, eventOutput } = spooled.meta
    const full = session === undefined && !eventOutput ? this.#full : undefined
    return new CommandRecord(spooled, { stdin: this.#windowOf(channel, start), full, isFound: start === 'unknown' })
  }

  /** A full output that is not even what the spool has was not acknowledged, and begins anew. */
  async #receivedOf({ meta, outputBytes }: Pick<SpooledCommand, 'meta' | 'outputBytes'>): Promise<number> {
    const bytes = this.#full.sizeOf(meta.command.id)
    if (bytes > outputBytes && !meta.complete) return bytes
    await this.#full.drop(meta.command.id)
    return outputBytes
  }

  /** What cannot be kept is lost with its sandbox; the end of the command is true all the same. */
  async #keepFull({ id, session, meta }: CommandRecord, produced: number | 'unknown'): Promise<KeptOutput | null> {
    if (session !== undefined || meta.eventOutput) return null
    try {
      return await this.#full.keep(id, produced)
    } catch (error) {
      this.#options.log.error('the full output of a command was not kept', { command: id, error })
      return null
    }
  }

  #windowOf(channel: number, start: 'fresh' | 'unknown'): SendWindow {
    const put = (offset: number, bytes: Buffer) => this.#options.put({ channel, offset, bytes })
    return new SendWindow({ start, patienceMs: undefined, put })
  }

  #add(record: CommandRecord): void {
    this.#records.set(record.id, record)
    this.#byChannel.set(record.channel, record)
    if (record.isComplete) return void this.#retire(record)
    this.#unended.add(record)
    if (!record.isWaiting) this.#watch(record)
  }

  #watch(record: CommandRecord): void {
    this.#deadlines.watch(record, this.#starting.has(record) ? 'start' : 'end')
  }

  /** Its sandbox ends now; whoever waits for it hears why. */
  #giveUp(record: CommandRecord): void {
    record.lost(this.#options.clock.now(), 'overdue')
    this.#save(record)
    this.#retire(record)
    this.#options.onOverdue(record.id)
  }
}

interface Ended {
  /** Oldest first. */
  readonly records: Set<CommandRecord>
  lastAt: number
}

/** In the order of channels, which is that of their beginnings; what has ended in that of their ends. */
function byAge<S extends Pick<SpooledCommand, 'meta'>>(spooled: readonly S[]): readonly S[] {
  const ageOf = ({ meta: { complete, command } }: S) => (complete ? (command.endedAt ?? 0) : Infinity)
  return spooled.toSorted((a, b) => {
    const [first, second] = [ageOf(a), ageOf(b)]
    return first === second ? a.meta.channel - b.meta.channel : first - second
  })
}
