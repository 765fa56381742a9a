import {
  close,
  closeSync,
  constants,
  fchmodSync,
  fsync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  symlinkSync,
  unlinkSync,
  chmodSync,
  writeSync,
} from 'node:fs'
import { promisify } from 'node:util'
import type { TarEntry, TarEvent } from '@airlock/std/tar'
import { asUser, type User } from '../as-user.ts'
import { errnoOf, GuestFailure } from '../failure.ts'

const closeAsync = promisify(close)
const syncAsync = promisify(fsync)
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants

/** Files that are written, and not yet known to be on the disk. */
const UNSYNCED = 64

/**
 * Writes judged entries below one directory, with the rights of user code. It goes through no link and replaces files and
 * links, never what they lead to. A program that swaps directories meanwhile moves at most what itself may move.
 */
export class TreeWriter {
  readonly #root: Buffer
  readonly #user: User
  /** Directories that were seen to be some, by their path below the root. */
  readonly #directories = new Set<string>()
  /** Complete, and still open. */
  readonly #unsynced: number[] = []
  readonly #syncs = new Set<Promise<void>>()
  #failure: unknown
  #open: number | undefined
  #written = 0
  #last = ''

  constructor(root: Buffer, user: User) {
    this.#root = root
    this.#user = user
  }

  /** How far it came, for the message of a failure. */
  get progress(): string {
    const { length } = this.#last
    if (this.#written === 0) return 'Nothing was written.'
    return `${this.#written} entries were written, the last is ${length > 200 ? `${this.#last.slice(0, 200)}…` : this.#last}.`
  }

  /** Writes what a reader handed out, in one change of rights: each costs as much as making a file. */
  take(events: Iterable<TarEvent>): void {
    asUser(this.#user, () => {
      for (const event of events) {
        if (event.kind === 'entry') this.#begin(event.entry)
        else if (event.kind === 'bytes') this.#write(event.bytes)
        else if (event.kind === 'complete') this.#complete(event.entry)
      }
    })
  }

  /** Resolves when few files are left that may not be on the disk yet. */
  async settle(): Promise<void> {
    this.#startSyncs()
    while (this.#syncs.size >= UNSYNCED) await Promise.race(this.#syncs)
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Everything is on the disk of the sandbox. An empty archive leaves a directory too. */
  async finish(): Promise<void> {
    asUser(this.#user, () => this.#makeRoot())
    this.#startSyncs()
    await Promise.all(this.#syncs)
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Gives up the file that is open. */
  async abandon(): Promise<void> {
    const fd = this.#open
    this.#open = undefined
    if (fd !== undefined) closeSync(fd)
    this.#startSyncs()
    await Promise.all(this.#syncs)
  }

  #begin(entry: TarEntry): void {
    this.#parents(entry.path)
    if (entry.kind === 'directory') this.#directory(entry)
    else if (entry.kind === 'symlink') this.#link(entry)
    else this.#open = this.#file(entry)
  }

  #write(bytes: Buffer): void {
    const fd = this.#open
    if (fd === undefined) throw new GuestFailure('internal', 'content without a file')
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
  }

  #complete({ path, modifiedMs }: TarEntry): void {
    const fd = this.#open
    if (fd !== undefined) futimesSync(fd, modifiedMs / 1000, modifiedMs / 1000)
    this.#open = undefined
    if (fd !== undefined) this.#unsynced.push(fd)
    this.#written++
    this.#last = path
  }

  #startSyncs(): void {
    for (const fd of this.#unsynced.splice(0)) {
      const syncing = this.#sync(fd).finally(() => this.#syncs.delete(syncing))
      this.#syncs.add(syncing)
    }
  }

  /** The first failure is kept for whoever asks next: nobody waits for this promise alone. */
  async #sync(fd: number): Promise<void> {
    try {
      await syncAsync(fd)
    } catch (error) {
      // The disk of the sandbox had room when it was written: it is the host that has none.
      const isHost = errnoOf(error) === 'ENOSPC'
      const failure = isHost ? new GuestFailure('disk_failed', 'the host could not write what was sent') : error
      if (errnoOf(error) !== 'EINVAL') this.#failure ??= failure
    } finally {
      await closeAsync(fd)
    }
  }

  #file({ path, mode }: TarEntry): number {
    const at = this.#at(path)
    const found = lstatSync(at, { throwIfNoEntry: false })
    if (found?.isDirectory()) throw new GuestFailure('is_a_directory', `${path} is a directory in the sandbox`)
    if (found) unlinkSync(at)
    const fd = openSync(at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK, 0o600)
    fchmodSync(fd, mode)
    return fd
  }

  #link({ path, target }: TarEntry): void {
    const at = this.#at(path)
    const found = lstatSync(at, { throwIfNoEntry: false })
    if (found?.isDirectory()) throw new GuestFailure('is_a_directory', `${path} is a directory in the sandbox`)
    if (found) unlinkSync(at)
    symlinkSync(target, at)
  }

  /** Its owner can always write into it: the entries below it may still have to come. */
  #directory({ path, mode }: TarEntry): void {
    this.#make(path)
    chmodSync(this.#at(path), mode | 0o700)
  }

  #parents(path: string): void {
    this.#makeRoot()
    for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1))
      this.#make(path.slice(0, slash))
  }

  #makeRoot(): void {
    if (this.#directories.has('')) return
    mkdirSync(this.#root, { recursive: true, mode: 0o755 })
    this.#directories.add('')
  }

  #make(path: string): void {
    if (this.#directories.has(path)) return
    const at = this.#at(path)
    const found = lstatSync(at, { throwIfNoEntry: false })
    if (!found) mkdirSync(at, { mode: 0o755 })
    else if (!found.isDirectory())
      throw new GuestFailure('not_a_directory', `${path} is no directory in the sandbox, and links are not followed`)
    this.#directories.add(path)
  }

  #at(path: string): Buffer {
    return Buffer.concat([this.#root, Buffer.from(`/${path}`)])
  }
}
