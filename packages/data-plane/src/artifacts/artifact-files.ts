import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AirlockError, artifactId, type Failpoint, id as tenantId } from '@airlock/contract'
import { KeyedLock, type Log, newId } from '@airlock/std'

/**
 * Bytes of artifacts, each under the id of its artifact. An object store can stand behind it.
 *
 * `put` resolves once the bytes are whole and durable under the id, and leaves nothing under it when it throws. `remove` is
 * idempotent. Whoever has the rows removes what has no row.
 */
export interface ArtifactStore {
  put(of: ArtifactRef, bytes: AsyncIterable<Buffer>, maxBytes: number): Promise<{ sha256: string; bytes: number }>
  /** Undefined when it is not there. `to` is the last byte; absent is the end. */
  read(of: ArtifactRef, part: { from: number; to?: number }): Promise<AsyncIterable<Buffer> | undefined>
  /** `sha256` of its content spares a search; null when nobody knows it. */
  remove(of: ArtifactRef, sha256: string | null): Promise<void>
  tenants(): Promise<readonly string[]>
  list(tenant: string): Promise<readonly string[]>
}

export interface ArtifactRef {
  readonly tenant: string
  readonly id: string
}

export interface ArtifactFilesOptions {
  readonly dir: string
  /** Whether the disk has room for more; the reserve of the host is not for artifacts. */
  readonly hasRoom: () => boolean
  readonly log: Log
  readonly failpoint: Failpoint
}

/** The disk is asked again after so many bytes. */
const LOOK_BYTES = 16 * 1024 * 1024

/**
 * A directory of this host: `content/<tenant>/<sha256>` holds each content once, `named/<tenant>/<id>` is a hard link to it for each
 * artifact, `incoming` is what is being written. The kernel counts the links, so no count can be wrong after a crash: content
 * without a second link belongs to nobody. Equal content of two tenants is kept twice.
 */
export class ArtifactFiles implements ArtifactStore {
  readonly #options: ArtifactFilesOptions
  /** By tenant and hash: nobody links content while it is removed. */
  readonly #turns = new KeyedLock()

  private constructor(options: ArtifactFilesOptions) {
    this.#options = options
  }

  /** Removes what an earlier process left unfinished. */
  static async open(options: ArtifactFilesOptions): Promise<ArtifactFiles> {
    const files = new ArtifactFiles(options)
    await rm(join(options.dir, 'incoming'), { recursive: true, force: true })
    for (const part of ['incoming', 'content', 'named'])
      await mkdir(join(options.dir, part), { recursive: true, mode: 0o700 })
    await files.#dropUnnamed()
    return files
  }

  async put(
    of: ArtifactRef,
    bytes: AsyncIterable<Buffer>,
    maxBytes: number,
  ): Promise<{ sha256: string; bytes: number }> {
    const { dir, failpoint } = this.#options
    const named = this.#named(of)
    const incoming = join(dir, 'incoming', newId('in'))
    try {
      const written = await this.#write(incoming, bytes, maxBytes)
      await failpoint('artifact.staged')
      await this.#name(incoming, of, written.sha256)
      await failpoint('artifact.stored')
      return written
    } catch (error) {
      await rm(named, { force: true })
      throw orDiskError(error)
    } finally {
      await rm(incoming, { force: true })
    }
  }

  async read(of: ArtifactRef, part: { from: number; to?: number }): Promise<AsyncIterable<Buffer> | undefined> {
    const file = await open(this.#named(of)).catch(() => undefined)
    if (!file) return undefined
    return createReadStream('', { fd: file, start: part.from, ...(part.to === undefined ? {} : { end: part.to }) })
  }

  async remove(of: ArtifactRef, sha256: string | null): Promise<void> {
    const named = this.#named(of)
    await this.#turns.run(of.tenant, async () => {
      const there = await stat(named).catch(() => undefined)
      await rm(named, { force: true })
      if (there?.nlink === 2) await this.#dropContent(of.tenant, { ino: there.ino, sha256 })
    })
  }

  async tenants(): Promise<readonly string[]> {
    return (await readdir(join(this.#options.dir, 'named'))).filter(isTenant)
  }

  async list(tenant: string): Promise<readonly string[]> {
    const names = await readdir(this.#directory('named', tenant)).catch(() => [])
    return names.filter((name) => artifactId.safeParse(name).success)
  }

  async #write(path: string, bytes: AsyncIterable<Buffer>, maxBytes: number) {
    const file = await open(path, 'wx', 0o600)
    try {
      const hash = createHash('sha256')
      let size = 0
      let looked = 0
      for await (const chunk of bytes) {
        size += chunk.length
        if (size > maxBytes) throw new AirlockError('artifact_too_large')
        const isDue = looked === 0 || size - looked >= LOOK_BYTES
        if (isDue && !this.#options.hasRoom()) throw new AirlockError('host_disk_full')
        if (isDue) looked = size
        hash.update(chunk)
        await writeAll(file, chunk)
      }
      await file.sync()
      return { sha256: hash.digest('hex'), bytes: size }
    } finally {
      await file.close()
    }
  }

  /** Content that is there already is linked; else the new file becomes it. */
  async #name(incoming: string, of: ArtifactRef, sha256: string): Promise<void> {
    const content = join(this.#directory('content', of.tenant), sha256)
    const named = this.#named(of)
    await this.#turns.run(of.tenant, async () => {
      for (const part of ['content', 'named'] as const) await this.#makeDirectory(part, of.tenant)
      const isLinked = await link(content, named).then(
        () => true,
        // It is not there, or has as many links as a file can have.
        () => false,
      )
      if (!isLinked) {
        await rename(incoming, content)
        await link(content, named)
        await syncDirectory(this.#directory('content', of.tenant))
      }
      await syncDirectory(this.#directory('named', of.tenant))
    })
  }

  /** Removes content that no artifact is linked to. Precondition: in the turn of the tenant. */
  async #dropContent(tenant: string, of: { readonly ino: number; readonly sha256: string | null }): Promise<void> {
    const directory = this.#directory('content', tenant)
    for (const name of of.sha256 === null ? await readdir(directory) : [of.sha256]) {
      const path = join(directory, name)
      const found = await stat(path).catch(() => undefined)
      if (found?.ino === of.ino && found.nlink === 1) await rm(path, { force: true })
    }
  }

  /** Content of which nothing is named: a crash came between two steps. */
  async #dropUnnamed(): Promise<void> {
    for (const tenant of (await readdir(join(this.#options.dir, 'content'))).filter(isTenant)) {
      const directory = this.#directory('content', tenant)
      for (const name of await readdir(directory)) {
        const path = join(directory, name)
        const { nlink } = await stat(path)
        if (nlink > 1) continue
        this.#options.log.info('removing the content of an artifact that nothing names', { tenant })
        await rm(path, { force: true })
      }
    }
  }

  async #makeDirectory(part: 'content' | 'named', tenant: string): Promise<void> {
    const made = await mkdir(this.#directory(part, tenant), { recursive: true, mode: 0o700 })
    if (made !== undefined) await syncDirectory(join(this.#options.dir, part))
  }

  #named({ tenant, id }: ArtifactRef): string {
    if (!artifactId.safeParse(id).success) throw new AirlockError('artifact_not_found')
    return join(this.#directory('named', tenant), id)
  }

  #directory(part: 'content' | 'named', tenant: string): string {
    if (!isTenant(tenant)) throw new AirlockError('tenant_not_found')
    return join(this.#options.dir, part, tenant)
  }
}

function isTenant(name: string): boolean {
  return tenantId.safeParse(name).success
}

async function writeAll(file: FileHandle, chunk: Buffer): Promise<void> {
  for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at)).bytesWritten
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

const DISK_ERRORS: Readonly<Record<string, 'host_disk_full' | 'disk_failed'>> = {
  ENOSPC: 'host_disk_full',
  EDQUOT: 'host_disk_full',
  EIO: 'disk_failed',
  EROFS: 'disk_failed',
}

function orDiskError(error: unknown): unknown {
  const errno = error instanceof Error && 'code' in error ? String(error.code) : ''
  const code = DISK_ERRORS[errno]
  return code === undefined ? error : new AirlockError(code, undefined, { cause: error })
}
