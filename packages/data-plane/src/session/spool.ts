import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandId, nodeCommand } from '@airlock/contract'
import { STREAM } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'
import { z } from 'zod'

/** What must survive us about a command, beside its output. */
const commandMeta = z.strictObject({
  channel: z.int(),
  timeoutMs: z.int(),
  maxOutputBytes: z.int(),
  /** Text is kept until the command has ended, so that a restart can feed the rest of it. */
  stdin: z.union([z.strictObject({ text: z.string() }), z.enum(['none', 'open'])]),
  /** All output is in the spool: exit is not end of output. */
  complete: z.boolean(),
  command: nodeCommand,
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

const ENTRY_HEADER_BYTES = 5
const READ_BYTES = 256 * 1024

/**
 * Commands of one sandbox on disk: `<id>.json` is replaced as a whole, `<id>.out` only grows, by entries of a stream
 * byte, a length and the bytes. It outlives this process, not the sandbox.
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
      if (name === `${id}.json` && commandId.safeParse(id).success) found.push(...(await this.#loadOne(id)))
      else if (name !== `${id}.out` || !names.has(`${id}.json`)) await rm(join(this.#directory, name), { force: true })
    }
    return found
  }

  async save(meta: CommandMeta): Promise<void> {
    const path = this.#path(meta.command.id, 'json')
    await writeFile(`${path}.tmp`, JSON.stringify(meta), { mode: 0o600 })
    await rename(`${path}.tmp`, path)
  }

  async remove(id: string): Promise<void> {
    await rm(this.#path(id, 'json'), { force: true })
    await rm(this.#path(id, 'out'), { force: true })
  }

  /** Appends, and says how long the file is now. All or nothing, as far as readers are concerned. */
  async append(id: string, outputs: readonly Output[]): Promise<number> {
    const entries = outputs.flatMap(({ stream, bytes }) => [entryHeader(stream, bytes.length), bytes])
    const buffer = Buffer.concat(entries)
    await writeFile(this.#path(id, 'out'), buffer, { flag: 'a', mode: 0o600 })
    return buffer.length
  }

  /** Best effort after an append that failed half-way. */
  async cut(id: string, fileBytes: number): Promise<void> {
    await truncate(this.#path(id, 'out'), fileBytes)
  }

  async openReader(id: string): Promise<SpoolReader> {
    return new SpoolReader(await open(this.#path(id, 'out'), 'a+', 0o600))
  }

  async #loadOne(id: string): Promise<readonly SpooledCommand[]> {
    const meta = commandMeta.safeParse(parseJson(await readFile(this.#path(id, 'json'), 'utf8')))
    if (!meta.success || meta.data.command.id !== id) {
      this.#log.error('a command in the spool cannot be read and is dropped', { command: id })
      await this.remove(id)
      return []
    }
    const reader = await this.openReader(id)
    try {
      let outputBytes = 0
      for await (const { bytes } of reader.entries(await reader.fileBytes())) outputBytes += bytes.length
      await this.cut(id, reader.position)
      return [{ meta: meta.data, outputBytes, fileBytes: reader.position }]
    } finally {
      await reader.close()
    }
  }

  #path(id: string, extension: 'json' | 'out'): string {
    return join(this.#directory, `${id}.${extension}`)
  }
}

/** Reads whole entries of one output, in bounded pieces. */
export class SpoolReader {
  readonly #handle: FileHandle
  #position = 0

  constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** The end of the last whole entry that was read. */
  get position(): number {
    return this.#position
  }

  async fileBytes(): Promise<number> {
    return (await this.#handle.stat()).size
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

  async close(): Promise<void> {
    await this.#handle.close()
  }

  async #read(length: number): Promise<Buffer> {
    const { bytesRead, buffer } = await this.#handle.read(Buffer.allocUnsafe(length), 0, length, this.#position)
    return buffer.subarray(0, bytesRead)
  }
}

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
  const isKnown = stream === STREAM.stdout || stream === STREAM.stderr
  return isKnown && end <= bytes.length ? { stream, bytes: bytes.subarray(ENTRY_HEADER_BYTES, end) } : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller drops what is not a meta.
    return undefined
  }
}
