import { type Dir, lstatSync, opendirSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { type GuestFound, type GuestRequest, INSIDE, pathText } from '@airlock/contract/guest'
import { asUser, type User } from '../as-user.ts'
import { errnoOf } from '../failure.ts'
import { compilePatterns } from './patterns.ts'

type FindRequest = Extract<GuestRequest, { op: 'file.find' }>
type Stopped = NonNullable<GuestFound['stopped']>

/** Nobody waits longer for an answer. */
const FIND_MS = 10_000
/** What is looked at before others have their turn. */
const BATCH = 256
const MAX_DEPTH = 128
/** Well below a frame, whatever the names are. */
const FOUND_BYTES = 2 * 1024 * 1024
const SKIPPED_SHOWN = 100
/** Programs own nothing there, and reading some of it never ends. */
const NEVER = ['/proc', '/sys', '/dev', '/run/airlock']

/** Regular files by patterns, with the rights of user code. It follows no link, and ends in bounded time whatever is there. */
export class FileFinder {
  readonly #user: User
  readonly #asked: FindRequest
  readonly #patterns: ReturnType<typeof compilePatterns>
  readonly #until = performance.now() + FIND_MS
  readonly #files: { path: string; size: number }[] = []
  readonly #skipped: { path: string; why: string }[] = []
  #skippedCount = 0
  #names = 0
  #bytes = 0
  #stopped: Stopped | undefined

  constructor(user: User, asked: FindRequest) {
    this.#user = user
    this.#asked = asked
    this.#patterns = compilePatterns(asked.patterns, INSIDE.workspace)
  }

  async find(): Promise<GuestFound> {
    for (const root of this.#patterns.roots) await this.#from(root)
    const stopped = this.#stopped === undefined ? {} : { stopped: this.#stopped }
    return { files: this.#files, skipped: this.#skipped, skippedCount: this.#skippedCount, ...stopped }
  }

  /** Each directory on the way to a root must be one, and no link. */
  async #from(root: string): Promise<void> {
    const parts = root.split('/').filter((part) => part !== '')
    for (let count = 1; count <= parts.length; count++) {
      const path = `/${parts.slice(0, count).join('/')}`
      const kind = asUser(this.#user, () => this.#look(path))
      if (kind === 'directory') continue
      if (kind !== undefined && (count < parts.length || kind === 'other')) this.#skip(path, 'is a link or no file')
      return
    }
    await this.#inside(root, 0)
  }

  async #inside(directory: string, depth: number): Promise<void> {
    if (this.#stopped !== undefined || NEVER.some((place) => `${directory}/`.startsWith(`${place}/`))) return
    if (depth > MAX_DEPTH) return this.#skip(directory, 'is too deep')
    const subdirectories: string[] = []
    const opened = asUser(this.#user, () => this.#open(directory))
    if (!opened) return
    try {
      for (let isOver = false; !isOver && this.#stopped === undefined; await turn())
        isOver = asUser(this.#user, () => this.#batch(opened, directory, subdirectories))
    } finally {
      opened.closeSync()
    }
    for (const one of subdirectories.toSorted()) await this.#inside(one, depth + 1)
  }

  /** True at the end of the directory. */
  #batch(opened: Dir, directory: string, subdirectories: string[]): boolean {
    for (let count = 0; count < BATCH; count++) {
      const entry = opened.readSync()
      if (!entry) return true
      if (++this.#names > this.#asked.names) this.#stopped = 'names'
      if (performance.now() > this.#until) this.#stopped = 'time'
      if (this.#stopped !== undefined) return true
      const path = directory === '/' ? `/${entry.name}` : `${directory}/${entry.name}`
      const isMeant = this.#patterns.matches(path)
      if (!isMeant && !this.#patterns.mayLeadTo(path)) continue
      const kind = this.#look(path, isMeant)
      if (kind === 'directory') subdirectories.push(path)
      else if (kind === 'other' && isMeant) this.#skip(path, 'is a link or no file')
    }
    return false
  }

  /** As the user. What is a file and meant is taken. Paths are latin1: one character for each byte. */
  #look(path: string, isMeant = this.#patterns.matches(path)): 'directory' | 'file' | 'other' | undefined {
    try {
      const stats = lstatSync(Buffer.from(path, 'latin1'))
      if (stats.isDirectory()) return 'directory'
      if (!stats.isFile()) return 'other'
      if (isMeant) this.#take(path, stats.size)
      return 'file'
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' && isMeant) this.#skip(path, `cannot be looked at (${errnoOf(error)})`)
      return undefined
    }
  }

  #take(path: string, size: number): void {
    const text = shown(path)
    this.#bytes += text.length * 2
    if (this.#files.length >= this.#asked.files || this.#bytes > FOUND_BYTES) this.#stopped = 'files'
    else this.#files.push({ path: text, size })
  }

  #open(directory: string): Dir | undefined {
    try {
      return opendirSync(Buffer.from(directory, 'latin1'), { encoding: 'latin1', bufferSize: BATCH })
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') this.#skip(directory, `cannot be read (${errnoOf(error)})`)
      return undefined
    }
  }

  #skip(path: string, why: string): void {
    this.#skippedCount++
    if (this.#skipped.length < SKIPPED_SHOWN) this.#skipped.push({ path: shown(path), why })
  }
}

function shown(path: string): string {
  return pathText(Buffer.from(path, 'latin1'))
}
