import { closeSync, fstatSync, openSync, read, readSync, unlinkSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { commandId, nodeCommand, sessionId, stepId } from '@airlock/contract'
import { STREAM } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'
import { z } from 'zod'
import { strain } from './end-cause.ts'
import { FULL_SUFFIX } from './full-output.ts'
import { Journal } from './journal.ts'

/** What the group of a session has used so far. */
const groupUsage = z.strictObject({
  cpuMs: z.number().nullable(),
  memoryPeakBytes: z.number().nullable(),
  /** Counted for all of user code together: true of the session only as long as nothing else ran. */
  isWhole: z.boolean(),
})
export type GroupUsage = z.infer<typeof groupUsage>

/** What must survive us about a command or a step, beside its output. */
const commandMeta = z.strictObject({
  channel: z.int(),
  timeoutMs: z.int(),
  maxOutputBytes: z.int(),
  /** Text is kept until the command has ended, so that a restart can feed the rest of it. */
  stdin: z.union([z.strictObject({ text: z.string() }), z.enum(['none', 'open'])]),
  /** All output is in the spool: exit is not end of output. */
  complete: z.boolean(),
  command: nodeCommand,
  /** Of a step only: whose it is, and what its session had used when its turn came. */
  session: sessionId.optional(),
  /** Of a command with an event output. */
  eventOutput: z.literal(true).optional(),
  before: groupUsage.nullable().optional(),
  /** What its sandbox had run into when it began; absent of those from before. */
  strain: strain.nullable().optional(),
  /** Processor time of each of its processes, where the caller set one. */
  cpuSeconds: z.int().optional(),
})
export type CommandMeta = z.infer<typeof commandMeta>

export interface Output {
  readonly stream: number
  readonly bytes: Buffer
}

export interface SpooledCommand {
  readonly meta: CommandMeta
  readonly outputBytes: number
  readonly fileBytes: number
  /** What arrived of it, also beyond its cap. */
  readonly receivedBytes: number
}

const runId = z.union([commandId, stepId])
/** A state, with all that was said where that is little; or that there is none any more. */
const journalLine = z.union([
  z.strictObject({ meta: commandMeta, output: z.string().optional() }),
  z.strictObject({ removed: runId }),
])
const JOURNAL = 'journal.ndjson'
const ENTRY_HEADER_BYTES = 5
const READ_BYTES = 256 * 1024
/** Up to here a call that waits is faster than the way to another thread and back, five times and more. */
const SMALL_BYTES = 64 * 1024
const readLater = promisify(read)

/** Whoever has said no more than this has no file: the guest keeps it until the end, which is written together with it. */
export const HELD_BYTES = 4 * 1024

interface Kept {
  readonly meta: CommandMeta
  /** All of its entries, until they are in a file. */
  readonly held: Buffer | null
}

/**
 * Commands and steps of one sandbox on disk. The journal has a line for each of their states, of which the last one counts.
 * Output beyond `HELD_BYTES` is in `<id>.out`, which only grows, by entries of a stream byte, a length and the bytes.
 * It outlives this process, not the sandbox.
 */
export class Spool {
  readonly #directory: string
  readonly #log: Log
  readonly #journal: Journal
  readonly #kept = new Map<string, Kept>()
  /** Removals, written with the next line: what comes back because they were not is removed again. */
  #removals = ''

  constructor(directory: string, log: Log) {
    this.#directory = directory
    this.#log = log
    this.#journal = new Journal(join(directory, JOURNAL))
  }

  /** What an earlier process left. A torn entry at the end of an output is cut off: the guest has it still. */
  async load(): Promise<readonly Omit<SpooledCommand, 'receivedBytes'>[]> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const onCut = (bytes: number) =>
      this.#log.warn('the end of the journal of commands was cut off', { directory: this.#directory, bytes })
    for (const line of await this.#journal.read(onCut)) this.#replay(line)
    for (const name of await readdir(this.#directory)) await this.#meet(name)
    const found: Omit<SpooledCommand, 'receivedBytes'>[] = []
    for (const [id, { meta }] of this.#kept) found.push({ meta, ...(await this.#measure(id)) })
    return found
  }

  /** A last state is written with what was held, so that nobody else need keep it. */
  save(meta: CommandMeta): void {
    const { id } = meta.command
    const kept = { meta, held: this.#kept.has(id) ? this.heldOf(id) : NOTHING }
    this.#journal.append(`${this.#removals}${lineOf(kept)}`)
    this.#removals = ''
    this.#kept.set(id, kept)
    if (this.#journal.isLong) this.#journal.rewrite([...this.#kept.values()].map(lineOf).join(''))
  }

  remove(id: string): void {
    const kept = this.#kept.get(id)
    if (!kept) return
    this.#kept.delete(id)
    this.#removals += `${JSON.stringify({ removed: id })}\n`
    if (!kept.held) removeFile(this.#path(id))
  }

  /** Keeps output in memory, and says how long it is with it. Precondition: nothing of it is in a file. */
  hold(id: string, outputs: readonly Output[]): number {
    const bytes = entriesOf(outputs)
    const kept = this.#kept.get(id)
    if (kept?.held) this.#kept.set(id, { ...kept, held: Buffer.concat([kept.held, bytes]) })
    return bytes.length
  }

  /** Appends to the file, after what was held, and says how much. All or nothing, as far as readers are concerned. */
  async append(id: string, outputs: readonly Output[]): Promise<number> {
    const bytes = entriesOf(outputs)
    const kept = this.#kept.get(id)
    const all = kept?.held ? Buffer.concat([kept.held, bytes]) : bytes
    const options = { flag: 'a', mode: 0o600 } as const
    if (all.length > SMALL_BYTES) await writeFile(this.#path(id), all, options)
    else writeFileSync(this.#path(id), all, options)
    if (kept?.held) this.#kept.set(id, { ...kept, held: null })
    return bytes.length
  }

  /** Best effort after an append that failed half-way. */
  async cut(id: string, fileBytes: number): Promise<void> {
    await truncate(this.#path(id), this.heldOf(id) ? 0 : fileBytes)
  }

  /** What has no file yet; null when it has one. */
  heldOf(id: string): Buffer | null {
    return this.#kept.get(id)?.held ?? null
  }

  reader(id: string): SpoolReader {
    return new SpoolReader(this.#path(id), () => this.heldOf(id))
  }

  close(): void {
    this.#journal.close()
  }

  #replay(line: string): void {
    const parsed = journalLine.safeParse(parseJson(line))
    if (!parsed.success) return this.#log.error('a line of the spool cannot be read and is left out', { line })
    if ('removed' in parsed.data) return void this.#kept.delete(parsed.data.removed)
    const { meta, output } = parsed.data
    this.#kept.set(meta.command.id, { meta, held: Buffer.from(output ?? '', 'base64') })
  }

  /** A file in the directory: output of ours, or what nobody knows. */
  async #meet(name: string): Promise<void> {
    if (name === JOURNAL || this.#kept.has(name.slice(0, -FULL_SUFFIX.length))) return
    const id = name.slice(0, -'.out'.length)
    const kept = name === `${id}.out` ? this.#kept.get(id) : undefined
    // What a journal tells of an output is all of it; its file is the rest of an append that failed.
    if (!kept || kept.held?.length) await rm(join(this.#directory, name), { force: true })
    else this.#kept.set(id, { ...kept, held: null })
  }

  async #measure(id: string): Promise<{ readonly outputBytes: number; readonly fileBytes: number }> {
    const reader = this.reader(id)
    try {
      let outputBytes = 0
      for await (const { bytes } of reader.entries(reader.size())) outputBytes += bytes.length
      if (!this.heldOf(id)) await this.cut(id, reader.position)
      return { outputBytes, fileBytes: reader.position }
    } finally {
      reader.close()
    }
  }

  #path(id: string): string {
    return join(this.#directory, `${id}.out`)
  }
}

/** Reads whole entries of one output, in bounded pieces. What said little is never opened. */
export class SpoolReader {
  readonly #path: string
  readonly #held: () => Buffer | null
  #file: number | undefined
  #position = 0

  constructor(path: string, held: () => Buffer | null) {
    this.#path = path
    this.#held = held
  }

  /** The end of the last whole entry that was read. */
  get position(): number {
    return this.#position
  }

  size(): number {
    return this.#held()?.length ?? fstatSync(this.#open()).size
  }

  /** The entries up to `end`, from where the last call stopped; an entry that is not whole ends it. */
  async *entries(end: number): AsyncGenerator<Output> {
    while (this.#position < end) {
      const block = await this.#read(Math.min(READ_BYTES, end - this.#position))
      let at = 0
      for (;;) {
        const entry = parseEntry(block.subarray(at))
        if (!entry) break
        at += ENTRY_HEADER_BYTES + entry.bytes.length
        this.#position += ENTRY_HEADER_BYTES + entry.bytes.length
        yield entry
      }
      if (at === 0) return
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }

  /** What was just written is in memory; what may have to come from the disk keeps nobody else waiting. */
  async #read(length: number): Promise<Buffer> {
    const held = this.#held()
    if (held) return held.subarray(this.#position, this.#position + length)
    const buffer = Buffer.allocUnsafe(length)
    const file = this.#open()
    if (length <= SMALL_BYTES) return buffer.subarray(0, readSync(file, buffer, 0, length, this.#position))
    const { bytesRead } = await readLater(file, buffer, 0, length, this.#position)
    return buffer.subarray(0, bytesRead)
  }

  #open(): number {
    this.#file ??= openSync(this.#path, 'a+', 0o600)
    return this.#file
  }
}

const NOTHING = Buffer.alloc(0)

function lineOf({ meta, held }: Kept): string {
  return `${JSON.stringify(meta.complete && held ? { meta, output: held.toString('base64') } : { meta })}\n`
}

function entriesOf(outputs: readonly Output[]): Buffer {
  return Buffer.concat(outputs.flatMap(({ stream, bytes }) => [entryHeader(stream, bytes.length), bytes]))
}

const KNOWN_STREAMS: ReadonlySet<number> = new Set([STREAM.stdout, STREAM.stderr, STREAM.rich])

function entryHeader(stream: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(ENTRY_HEADER_BYTES)
  header.writeUInt8(stream, 0)
  header.writeUInt32BE(length, 1)
  return header
}

function parseEntry(bytes: Buffer): Output | undefined {
  if (bytes.length < ENTRY_HEADER_BYTES) return undefined
  const stream = bytes.readUInt8(0)
  const end = ENTRY_HEADER_BYTES + bytes.readUInt32BE(1)
  return KNOWN_STREAMS.has(stream) && end <= bytes.length
    ? { stream, bytes: bytes.subarray(ENTRY_HEADER_BYTES, end) }
    : undefined
}

function removeFile(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller leaves out what is not a line of ours.
    return undefined
  }
}
