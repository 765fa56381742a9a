import { closeSync, fstatSync, openSync, read, readSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { commandId, nodeCommand, sessionId, stepId } from '@airlock/contract'
import { STREAM } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'
import { z } from 'zod'

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
  before: groupUsage.nullable().optional(),
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
}

const runId = z.union([commandId, stepId])
const ENTRY_HEADER_BYTES = 5
const READ_BYTES = 256 * 1024
/** Up to here a call that waits is faster than the way to another thread and back, five times and more. */
const SMALL_BYTES = 64 * 1024
const readLater = promisify(read)

/**
 * Commands and steps of one sandbox on disk. `<id>.json` has a line for each state, of which the last whole one counts; that of
 * a command, which may hold its stdin, is replaced. `<id>.out` only grows, by entries of a stream byte, a length and the bytes.
 * It outlives this process, not the sandbox.
 */
export class Spool {
  readonly #directory: string
  readonly #log: Log

  constructor(directory: string, log: Log) {
    this.#directory = directory
    this.#log = log
  }

  /** What an earlier process left. A torn entry at the end of an output is cut off: the guest has it still. */
  async load(): Promise<readonly SpooledCommand[]> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const names = new Set(await readdir(this.#directory))
    const found: SpooledCommand[] = []
    for (const name of names) {
      const id = name.slice(0, name.indexOf('.'))
      if (name === `${id}.json` && runId.safeParse(id).success) found.push(...(await this.#loadOne(id)))
      else if (name !== `${id}.out` || !names.has(`${id}.json`)) await rm(join(this.#directory, name), { force: true })
    }
    return found
  }

  async save(meta: CommandMeta): Promise<void> {
    const path = this.#path(meta.command.id, 'json')
    const text = `${JSON.stringify(meta)}\n`
    // File systems begin to write a file when it takes the place of another, which the records then wait for.
    if (meta.session !== undefined) return writeFileSync(path, text, { mode: 0o600, flag: 'a' })
    if (text.length > SMALL_BYTES) await writeFile(`${path}.tmp`, text, { mode: 0o600 })
    else writeFileSync(`${path}.tmp`, text, { mode: 0o600 })
    renameSync(`${path}.tmp`, path)
  }

  async remove(id: string): Promise<void> {
    removeFile(this.#path(id, 'json'))
    removeFile(this.#path(id, 'out'))
  }

  /** Appends, and says how long the file is now. All or nothing, as far as readers are concerned. */
  async append(id: string, outputs: readonly Output[]): Promise<number> {
    const entries = outputs.flatMap(({ stream, bytes }) => [entryHeader(stream, bytes.length), bytes])
    const buffer = Buffer.concat(entries)
    const options = { flag: 'a', mode: 0o600 } as const
    if (buffer.length > SMALL_BYTES) await writeFile(this.#path(id, 'out'), buffer, options)
    else writeFileSync(this.#path(id, 'out'), buffer, options)
    return buffer.length
  }

  /** Best effort after an append that failed half-way. */
  async cut(id: string, fileBytes: number): Promise<void> {
    await truncate(this.#path(id, 'out'), fileBytes)
  }

  reader(id: string): SpoolReader {
    return new SpoolReader(this.#path(id, 'out'))
  }

  async #loadOne(id: string): Promise<readonly SpooledCommand[]> {
    const meta = commandMeta.safeParse(parseLast(await readFile(this.#path(id, 'json'), 'utf8')))
    if (!meta.success || meta.data.command.id !== id) {
      this.#log.error('a command in the spool cannot be read and is dropped', { command: id })
      await this.remove(id)
      return []
    }
    const reader = this.reader(id)
    try {
      let outputBytes = 0
      for await (const { bytes } of reader.entries(reader.fileBytes())) outputBytes += bytes.length
      await this.cut(id, reader.position)
      return [{ meta: meta.data, outputBytes, fileBytes: reader.position }]
    } finally {
      reader.close()
    }
  }

  #path(id: string, extension: 'json' | 'out'): string {
    return join(this.#directory, `${id}.${extension}`)
  }
}

/** Reads whole entries of one output, in bounded pieces. What said nothing is never opened. */
export class SpoolReader {
  readonly #path: string
  #file: number | undefined
  #position = 0

  constructor(path: string) {
    this.#path = path
  }

  /** The end of the last whole entry that was read. */
  get position(): number {
    return this.#position
  }

  fileBytes(): number {
    return fstatSync(this.#open()).size
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

/** What was being written when the disk was full or the power went is not whole: the state before it counts. */
function parseLast(text: string): unknown {
  const states = text.split('\n').map(parseJson)
  return states.findLast((state) => state !== undefined)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller drops what is not a meta.
    return undefined
  }
}
