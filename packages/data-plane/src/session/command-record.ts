import {
  type AirlockError,
  type EndCause,
  type KeptOutput,
  type NodeCommand,
  type NodeCommandSpec,
  type ResourceUsage,
} from '@airlock/contract'
import { CHUNK_BYTES, FrameError, type GuestCommandEnd, STREAM } from '@airlock/contract/guest'
import { KeyedLock } from '@airlock/std'
import type { Strain } from './end-cause.ts'
import type { FullOutputs } from './full-output.ts'
import type { DataFrame } from './guest-connection.ts'
import { Notice } from './notice.ts'
import type { SendWindow } from './send-window.ts'
import { type CommandMeta, type GroupUsage, HELD_BYTES, type Output, type Spool, type SpooledCommand } from './spool.ts'

interface RecordParts {
  readonly stdin: SendWindow
  /** Where all of its output is kept when it is too much; a step has none. */
  readonly full: FullOutputs | undefined
  /** What is stored of it was found on disk, where an earlier process left it. */
  readonly isFound: boolean
}

/** What the host knows of one command or step. It believes the guest about exit and output, within the bounds of the caller. */
export class CommandRecord {
  /** Something below changed. */
  readonly changed = new Notice()
  readonly stdin: SendWindow
  /** Writers of stdin take turns. */
  readonly stdinLock = new KeyedLock()
  isStdinEnded = false
  isFeeding = false
  #meta: CommandMeta
  #stored: number
  #fileBytes: number
  /** Bytes that arrived, also those beyond the cap. */
  #received: number
  #staged: Output[] = []
  #stagedBytes = 0
  /** Beyond the caller's cap. */
  #over: Buffer[] = []
  #owesAck = false
  #failure: AirlockError | undefined
  readonly #full: FullOutputs | undefined
  readonly #isFound: boolean

  constructor(spooled: SpooledCommand, { stdin, full, isFound }: RecordParts) {
    this.#meta = spooled.meta
    this.#isFound = isFound
    this.#stored = spooled.outputBytes
    this.#received = spooled.receivedBytes
    this.#full = full
    this.#fileBytes = spooled.fileBytes
    this.stdin = stdin
  }

  get id(): string {
    return this.#meta.command.id
  }

  get channel(): number {
    return this.#meta.channel
  }

  /** Of a step: the session that it runs in. */
  get session(): string | undefined {
    return this.#meta.session
  }

  /** What the session had used when the step's turn came; undefined while it waits. */
  get before(): GroupUsage | null | undefined {
    return this.#meta.before
  }

  /** What its sandbox had run into when it began. */
  get strain(): Strain | null {
    return this.#meta.strain ?? null
  }

  get cpuSeconds(): number | undefined {
    return this.#meta.cpuSeconds
  }

  get stdinSource(): NodeCommandSpec['stdin'] {
    return this.#meta.stdin
  }

  get meta(): CommandMeta {
    return { ...this.#meta, command: this.command }
  }

  get command(): NodeCommand {
    return { ...this.#meta.command, outputBytes: this.#stored }
  }

  get isRunning(): boolean {
    return this.#meta.command.state === 'running'
  }

  /** Nobody knows what became of it. */
  get isLost(): boolean {
    return this.#meta.command.state === 'lost'
  }

  /** A step whose turn has not come: its time does not run yet. */
  get isWaiting(): boolean {
    return this.session !== undefined && this.#meta.before === undefined
  }

  get isComplete(): boolean {
    return this.#meta.complete
  }

  get received(): number {
    return this.#received
  }

  /** The length of the entries that readers may rely on. */
  get fileBytes(): number {
    return this.#fileBytes
  }

  /** It said more than its caller wants, and all of it is not kept yet. */
  get isOver(): boolean {
    return (this.#full?.sizeOf(this.id) ?? 0) > 0
  }

  /** When somebody outside must look why it has not ended. */
  get deadlineMs(): number {
    return this.#meta.command.startedAt + this.#meta.timeoutMs
  }

  /** Takes output; bytes that came before are skipped, bytes beyond the caller's cap are only in the full output. */
  stage(frame: DataFrame): void {
    if (!this.#mayUse(frame.stream)) throw new FrameError('output of no stream')
    if (frame.offset > this.#received) this.#skipTo(frame.offset)
    const fresh = frame.bytes.subarray(this.#received - frame.offset)
    if (fresh.length === 0 || this.#meta.complete) return
    this.#received += fresh.length
    this.#owesAck = true
    const kept = fresh.subarray(0, Math.max(0, this.#room))
    if (kept.length < fresh.length) {
      this.#truncate()
      this.#over.push(fresh.subarray(kept.length))
    }
    this.#keep(frame.stream, kept)
  }

  /** Keeps what was staged. Returns the offset to acknowledge, if any: what is little is left with the guest, too. */
  async flush(spool: Spool): Promise<number | undefined> {
    if (!this.#owesAck) return undefined
    const staged = this.#staged
    const stagedBytes = this.#stagedBytes
    this.#owesAck = false
    this.#staged = []
    this.#stagedBytes = 0
    const over = this.#over.splice(0)
    if (over.length === 0 && spool.heldOf(this.id) && this.#received <= HELD_BYTES) {
      this.#fileBytes += spool.hold(this.id, staged)
      this.#stored += stagedBytes
      this.changed.notify()
      return undefined
    }
    if (staged.length > 0 || spool.heldOf(this.id)) await this.#append(spool, staged, stagedBytes)
    if (over.length > 0) await this.#overflow(spool, over)
    this.changed.notify()
    return this.#received
  }

  /** The guest is about to be told what we have, and will keep it no longer. */
  async settle(spool: Spool): Promise<void> {
    if (spool.heldOf(this.id)?.length) await this.#append(spool, [], 0)
  }

  /** Denials that came before the command do not count for it. */
  beginStrain(strain: Strain | null): void {
    this.#meta = { ...this.#meta, strain }
  }

  /** The step's turn has come: its time and its use count from here. */
  begin(startedAt: number, before: GroupUsage | null, strain: Strain | null): void {
    this.#meta = { ...this.#meta, before, strain, command: { ...this.#meta.command, startedAt } }
  }

  /** It was not running for so long. */
  extend(ms: number): void {
    this.#meta = { ...this.#meta, timeoutMs: this.#meta.timeoutMs + ms }
  }

  exited(
    end: GuestCommandEnd,
    seen: { readonly endedAt: number; readonly usage: ResourceUsage | null; readonly cause: EndCause },
  ): void {
    const { exitCode, signal, timedOut, restarted = false } = end
    const { endedAt, usage, cause } = seen
    const ofStep = this.session === undefined ? {} : { restarted, usage }
    this.#update({ state: 'exited', exitCode, signal, timedOut, cause, endedAt, ...ofStep })
  }

  /** `full` is what is kept of an output that was too much. */
  closed(truncated: boolean, full: KeptOutput | null): void {
    this.#meta = { ...this.#meta, stdin: 'none', complete: true }
    if (truncated) this.#truncate()
    this.#update(full ? { full } : {})
  }

  /** Nobody can say what became of it, unless it is because its guest did not end it in time. */
  lost(endedAt: number, how: 'overdue' | { readonly full: KeptOutput | null }): void {
    const why = how === 'overdue' ? ({ cause: 'timeout', timedOut: true } as const) : {}
    if (this.isRunning) this.#update({ state: 'lost', endedAt, ...why })
    this.closed(false, how === 'overdue' ? null : how.full)
  }

  /** Nothing will come any more: whoever waits is told so. */
  abandon(error: AirlockError): void {
    this.#failure ??= error
    this.stdin.fail(error)
    this.changed.notify()
  }

  /** Resolves at the next change; rejects when there will be none. */
  async nextChange(signal: AbortSignal | undefined): Promise<void> {
    if (this.#failure) throw this.#failure
    await this.changed.wait(signal)
    if (this.#failure && !this.isComplete) throw this.#failure
  }

  get #room(): number {
    return this.#meta.maxOutputBytes - this.#stored - this.#stagedBytes
  }

  /**
   * Beyond the cap a gap costs no more than the full output: our disk was full, and we died before the guest was told. Below it a
   * file that we found has lost its end: the output is cut there, and the command goes on.
   */
  #skipTo(offset: number): void {
    const isOver = this.#full && this.#room <= 0
    if (!isOver && !this.#isFound) throw new FrameError('output with a gap')
    if (!isOver) this.#truncate()
    this.#full?.cut(this.id)
    this.#received = offset
  }

  /** The full output begins with what the spool has. */
  async #overflow(spool: Spool, over: readonly Buffer[]): Promise<void> {
    const full = this.#full
    if (!full || this.#meta.maxOutputBytes === 0) return
    if (full.sizeOf(this.id) === 0 && this.#stored > 0) {
      const reader = spool.reader(this.id)
      try {
        for await (const { bytes } of reader.entries(this.#fileBytes)) await full.append(this.id, [bytes])
      } finally {
        reader.close()
      }
    }
    await full.append(this.id, over)
  }

  #mayUse(stream: number): boolean {
    if (stream === STREAM.rich) return this.session !== undefined || this.#meta.eventOutput === true
    return stream === STREAM.stdout || stream === STREAM.stderr
  }

  #keep(stream: number, bytes: Buffer): void {
    this.#stagedBytes += bytes.length
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      const piece = bytes.subarray(at, at + CHUNK_BYTES)
      const last = this.#staged.at(-1)
      if (last?.stream === stream && last.bytes.length + piece.length <= CHUNK_BYTES)
        this.#staged.splice(-1, 1, { stream, bytes: Buffer.concat([last.bytes, piece]) })
      else this.#staged.push({ stream, bytes: piece })
    }
  }

  /** Output that our own disk cannot take is dropped like output beyond the cap: the command goes on. */
  async #append(spool: Spool, staged: readonly Output[], stagedBytes: number): Promise<void> {
    try {
      this.#fileBytes += await spool.append(this.id, staged)
      this.#stored += stagedBytes
    } catch {
      this.#truncate()
      this.#full?.cut(this.id)
      this.#meta = { ...this.#meta, maxOutputBytes: this.#stored }
      // Best effort: readers and the next load stop at the last whole entry anyway.
      await spool.cut(this.id, this.#fileBytes).catch(() => undefined)
    }
  }

  #truncate(): void {
    this.#update({ truncated: true })
  }

  #update(change: Partial<NodeCommand>): void {
    this.#meta = { ...this.#meta, command: { ...this.#meta.command, ...change } }
    this.changed.notify()
  }
}
