import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { newRecord, type NewRecord } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { z } from 'zod'

const MAX_FILE_BYTES = 256 * 1024 * 1024
const COMPACT_BYTES = 32 * 1024 * 1024
const MAX_DONE = 64
/** A shorter file is not worth truncating: that waits for the disk, a line does not. */
const CLEAR_BYTES = 64 * 1024
/** What the recorder takes within this time is not synced here: it is on its disk. */
const SYNC_AFTER_MS = 100
/** The directory belongs to a process that has given up root, and this may run before it did: no link is followed. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW

const spilledNote = z.strictObject({ rid: z.string(), at: z.number(), record: newRecord })
const spilledLine = z.union([spilledNote, z.strictObject({ done: z.string() })])

export interface SpilledNote {
  readonly rid: string
  /** Epoch milliseconds: when it happened. */
  readonly at: number
  readonly record: NewRecord
}

/**
 * Notes on disk until the recorder has them, so that they outlive the process: a line for each note, a line for each
 * that is done, truncated when all are and it is long enough. Nothing here throws: without a disk the notes are in memory only.
 */
export class Spill {
  /** What an earlier life left behind, oldest first. */
  readonly found: readonly SpilledNote[]
  /** By tenant: the records that it knew to be in the chain, oldest first, as far as they are written here. */
  readonly acknowledged: ReadonlyMap<string, readonly string[]>
  readonly #path: string
  readonly #log: Log
  readonly #maxDone: number
  #fd: number | undefined
  #bytes = 0
  #compactAt = COMPACT_BYTES
  #done: string[] = []
  /** The last write stopped in the middle of a line. */
  #torn = false
  #syncing: NodeJS.Timeout | undefined

  /** `maxDone`: how many that are done may be found again after a crash. */
  constructor(dir: string, log: Log, maxDone = MAX_DONE) {
    this.#maxDone = maxDone
    this.#path = join(dir, 'notes.ndjson')
    this.#log = log
    const { found, acknowledged } = this.#read()
    this.found = found
    this.acknowledged = acknowledged
    this.#open()
    if (this.found.length === 0) this.#clear()
  }

  add(note: SpilledNote): void {
    this.#writeDone()
    this.#write(lineOf(note))
    this.#sync()
  }

  /** `live` are the notes that are left. */
  remove(rid: string, live: ReadonlyMap<string, SpilledNote>): void {
    if (live.size === 0 && this.#bytes >= CLEAR_BYTES) return this.#clear()
    this.#done.push(rid)
    if (live.size === 0) this.#needNoSync()
    if (live.size === 0 || this.#done.length >= this.#maxDone) this.#writeDone()
    if (this.#bytes > this.#compactAt) this.#compact(live)
  }

  close(): void {
    this.#needNoSync()
    this.#writeDone()
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #read(): Pick<Spill, 'found' | 'acknowledged'> {
    const notes = new Map<string, SpilledNote>()
    const acknowledged: { readonly rid: string; readonly tenant: string }[] = []
    let unreadable = 0
    for (const line of this.#lines()) {
      const parsed = parseSpilled(line)
      if (!parsed) unreadable += 1
      else if ('done' in parsed) {
        const tenant = notes.get(parsed.done)?.record.tenant
        if (tenant !== undefined) acknowledged.push({ rid: parsed.done, tenant })
        notes.delete(parsed.done)
      } else notes.set(parsed.rid, parsed)
    }
    // A process that was killed inside `note` leaves one such line: the note was never taken.
    if (unreadable > 0) this.#log.warn('lines of the note spill could not be read', { unreadable })
    const byTenant = Map.groupBy(acknowledged, ({ tenant }) => tenant)
    return {
      found: [...notes.values()],
      acknowledged: new Map([...byTenant].map(([tenant, of]) => [tenant, of.map(({ rid }) => rid)])),
    }
  }

  #lines(): string[] {
    try {
      const { size } = lstatSync(this.#path)
      if (size <= MAX_FILE_BYTES)
        return readFileSync(this.#path, { encoding: 'utf8', flag: READ }).split('\n').filter(Boolean)
      renameSync(this.#path, `${this.#path}.too-large`)
      this.#log.error('the note spill was too large to read and was put aside', { size })
    } catch (error) {
      if (!isMissing(error)) this.#log.error('the note spill could not be read', { error })
    }
    return []
  }

  #open(): void {
    try {
      this.#fd = openSync(this.#path, APPEND, 0o600)
      this.#bytes = fstatSync(this.#fd).size
      // Whether the last line is whole is not known: an empty one between them does no harm.
      this.#torn = this.#bytes > 0
    } catch (error) {
      this.#log.warn('notes are kept in memory only', { error })
    }
  }

  #clear(): void {
    this.#done = []
    this.#needNoSync()
    if (this.#fd === undefined || this.#bytes === 0) return
    try {
      ftruncateSync(this.#fd, 0)
      this.#bytes = 0
      this.#torn = false
      this.#compactAt = COMPACT_BYTES
    } catch (error) {
      // What stays is sent again after a restart, and the recorder knows it by its rid.
      this.#log.warn('the note spill could not be cleared', { error })
    }
  }

  #writeDone(): void {
    if (this.#done.length === 0) return
    this.#write(this.#done.map((rid) => `${JSON.stringify({ done: rid })}\n`).join(''))
    this.#done = []
  }

  /** Atomic: a crash leaves the old file or the new one. */
  #compact(live: ReadonlyMap<string, SpilledNote>): void {
    const fresh = `${this.#path}.new`
    try {
      rmSync(fresh, { force: true })
      writeFileSync(fresh, [...live.values()].map(lineOf).join(''), { mode: 0o600, flag: 'wx', flush: true })
      renameSync(fresh, this.#path)
      this.#done = []
      this.close()
      this.#open()
    } catch (error) {
      this.#log.warn('the note spill could not be compacted', { error })
    }
    this.#compactAt = Math.max(COMPACT_BYTES, this.#bytes * 2)
  }

  #write(text: string): void {
    if (this.#fd === undefined) return
    const bytes = Buffer.from(this.#torn ? `\n${text}` : text)
    let written = 0
    try {
      written = writeSync(this.#fd, bytes)
    } catch (error) {
      // A full disk: the note is in memory still.
      this.#log.debug('a note could not be spilled', { error })
    }
    this.#bytes += written
    this.#torn ||= written > 0
    if (written === bytes.length) this.#torn = false
  }

  /** Best effort, one at a time: a note survives the death of the process without it. */
  #sync(): void {
    if (this.#syncing || this.#fd === undefined) return
    this.#syncing = setTimeout(() => {
      this.#syncing = undefined
      if (this.#fd !== undefined) fdatasync(this.#fd, () => {})
    }, SYNC_AFTER_MS).unref()
  }

  #needNoSync(): void {
    clearTimeout(this.#syncing)
    this.#syncing = undefined
  }
}

function lineOf(note: SpilledNote): string {
  return `${JSON.stringify({ rid: note.rid, at: note.at, record: note.record })}\n`
}

function parseSpilled(line: string): z.infer<typeof spilledLine> | undefined {
  try {
    return spilledLine.safeParse(JSON.parse(line)).data
  } catch {
    // Not JSON: counted by the caller.
    return undefined
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
