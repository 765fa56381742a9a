import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, rm, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { TarError, type TarEntry, type TarEvent, TarManifest, TarReader } from '@airlock/std/tar'
import { AirlockError } from '../errors.ts'
import type { ArchiveSummary } from '../nouns.ts'
import type { PackOptions, Skipped } from './local-tree.ts'

/** What an archive left behind in a local directory. */
export interface Unpacked extends ArchiveSummary {
  /** Names that the sandbox left out: the first hundred. */
  readonly skipped: readonly Skipped[]
  readonly skippedCount: number
}

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants

/**
 * Writes an archive below a local directory, which is made when it is not there. Each entry is judged first, no link is
 * written through, and files and links that are there are replaced. What breaks off leaves the files that were complete.
 */
export async function unpackTree(
  bytes: AsyncIterable<Uint8Array>,
  directory: string,
  options: PackOptions,
): Promise<Unpacked> {
  const tree = new LocalWriter(directory, options)
  const reader = new TarReader()
  try {
    await tree.begin()
    for await (const chunk of bytes) for (const event of reader.push(Buffer.from(chunk))) await tree.take(event)
    reader.finish()
    return tree.unpacked
  } catch (error) {
    await tree.abandon()
    throw explain(error, tree.progress)
  }
}

function explain(error: unknown, progress: string): unknown {
  if (error instanceof TarError)
    return new AirlockError('archive_invalid', `${error.message} ${progress}`, { cause: error })
  if (!(error instanceof AirlockError)) return error
  return new AirlockError(error.code, `${error.message} ${progress}`, { cause: error, hint: error.hint })
}

class LocalWriter {
  readonly #root: string
  readonly #options: PackOptions
  readonly #manifest = new TarManifest()
  readonly #directories = new Set<string>()
  /** Directories that are left out, with all that is in them. */
  readonly #ignored = new Set<string>()
  #comment: { skipped: readonly Skipped[]; count: number } = { skipped: [], count: 0 }
  #isIgnored = false
  #open: { readonly handle: FileHandle; readonly path: string } | undefined

  constructor(root: string, options: PackOptions) {
    this.#root = root
    this.#options = options
  }

  get progress(): string {
    const { files, directories, links } = this.#manifest.counts
    return `${files + directories + links} entries were written to ${this.#root}.`
  }

  get unpacked(): Unpacked {
    const { skipped, count } = this.#comment
    return { ...this.#manifest.summary, skipped, skippedCount: count }
  }

  async begin(): Promise<void> {
    await mkdir(this.#root, { recursive: true })
  }

  async take(event: TarEvent): Promise<void> {
    if (event.kind === 'comment') this.#comment = parseComment(event.text)
    else if (event.kind === 'entry') {
      this.#isIgnored = this.#isLeftOut(event.entry)
      if (!this.#isIgnored) await this.#entry(event.entry)
    }
    if (this.#isIgnored || event.kind === 'comment') return
    if (event.kind === 'bytes') await this.#open?.handle.writeFile(event.bytes)
    if (event.kind === 'complete') await this.#complete(event.entry)
    this.#manifest.take(event)
    this.#options.onProgress?.(this.#manifest.counts)
  }

  /** Removes the file that is not complete. */
  async abandon(): Promise<void> {
    const opened = this.#open
    this.#open = undefined
    if (!opened) return
    await opened.handle.close()
    await rm(opened.path, { force: true })
  }

  #isLeftOut({ path, kind }: TarEntry): boolean {
    for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1))
      if (this.#ignored.has(path.slice(0, slash))) return true
    if (this.#options.ignore?.(path, kind) !== true) return false
    if (kind === 'directory') this.#ignored.add(path)
    return true
  }

  async #entry({ path, kind, mode, target }: TarEntry): Promise<void> {
    for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1))
      await this.#make(path.slice(0, slash), 0o755)
    const at = join(this.#root, path)
    if (kind === 'directory') return this.#make(path, mode | 0o700)
    const found = await lookAt(at)
    if (found?.isDirectory()) throw new AirlockError('is_a_directory', `${at} is a directory here.`)
    if (found) await unlink(at)
    if (kind === 'symlink') return symlink(target, at)
    this.#open = { handle: await open(at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode | 0o600), path: at }
  }

  /** Fails closed: a link to a directory is not one. */
  async #make(path: string, mode: number): Promise<void> {
    if (this.#directories.has(path)) return
    const at = join(this.#root, path)
    const found = await lookAt(at)
    if (!found) await mkdir(at, { mode })
    else if (!found.isDirectory())
      throw new AirlockError('not_a_directory', `${at} is no directory here, and links are not followed.`)
    this.#directories.add(path)
  }

  async #complete({ modifiedMs }: TarEntry): Promise<void> {
    const opened = this.#open
    this.#open = undefined
    if (!opened) return
    await opened.handle.utimes(modifiedMs / 1000, modifiedMs / 1000)
    await opened.handle.close()
  }
}

async function lookAt(path: string): Promise<Awaited<ReturnType<typeof lstat>> | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

const MOST_SKIPPED = 100

/** The sandbox wrote it: a comment that is not ours is none. */
function parseComment(text: string): { skipped: readonly Skipped[]; count: number } {
  const nothing = { skipped: [], count: 0 }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || !('skipped' in value) || !('count' in value)) return nothing
    const { skipped, count } = value
    if (!Array.isArray(skipped) || typeof count !== 'number') return nothing
    return { skipped: skipped.slice(0, MOST_SKIPPED).filter((one) => isSkipped(one)), count }
  } catch {
    // Not JSON, so it is not a comment of ours.
    return nothing
  }
}

function isSkipped(value: unknown): value is Skipped {
  if (typeof value !== 'object' || value === null || !('path' in value) || !('why' in value)) return false
  return typeof value.path === 'string' && typeof value.why === 'string'
}
