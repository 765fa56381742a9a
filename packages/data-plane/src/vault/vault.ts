import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { id as tenantId } from '@airlock/contract'
import type { Clock, Log } from '@airlock/std'

export interface VaultOptions {
  readonly dir: string
  /** What is older goes. */
  readonly retentionMs: number
  /** Of all together; beyond it the oldest goes of whoever has the most: nobody pushes out what others have. */
  readonly maxBytes: number
  /** Whether the disk has room for more of it: the reserve of the host is not for this. */
  readonly hasRoom: () => boolean
  readonly clock: Clock
  readonly log: Log
}

export interface Kept {
  readonly id: string
  /** Whose it is. */
  readonly tenant: string
  readonly bytes: number
  /** Since when, epoch milliseconds. */
  readonly at: number
}

/** What one tenant puts in. */
export interface VaultShare {
  readonly hasRoom: boolean
  take(id: string, file: string): Promise<Kept | undefined>
  find(id: string): Kept | undefined
}

/** Ids name files, tenants their directories: nothing else does. */
const ID = /^[a-z]{2,8}_[A-Za-z0-9]{1,64}$/u
const SWEEP_EVERY_MS = 60_000

/**
 * Bytes that outlive the sandbox that they are of, each under an id, for a time and within a quota: the oldest goes first, so that
 * keeping more never fails for want of a place. What is in it is whole, over a crash too: a file is written elsewhere, and is
 * brought to the disk before it gets its name here.
 */
export class Vault {
  readonly #options: VaultOptions
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>()
  #sweeping: NodeJS.Timeout | undefined

  private constructor(options: VaultOptions) {
    this.#options = options
  }

  /** Finds what an earlier process kept. */
  static async open(options: VaultOptions): Promise<Vault> {
    const vault = new Vault(options)
    await mkdir(options.dir, { recursive: true, mode: 0o700 })
    await vault.#load()
    await vault.sweep()
    vault.#sweeping = setInterval(() => void vault.sweep(), SWEEP_EVERY_MS).unref()
    return vault
  }

  /**
   * Takes a file of the same file system, which is gone from where it was. Nobody may write to it any more. One that is larger than
   * the quota is refused.
   */
  async take(tenant: string, id: string, file: string): Promise<Kept | undefined> {
    const { maxBytes, clock } = this.#options
    const bytes = await flushFile(file)
    if (bytes > maxBytes || !ID.test(id) || !isTenant(tenant)) return undefined
    const kept = { id, tenant, bytes, at: clock.now() }
    const directory = dirname(this.#pathOf(kept))
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await rename(file, this.#pathOf(kept))
    await flushFile(directory)
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    await this.sweep()
    return kept
  }

  of(tenant: string): VaultShare {
    const hasRoom = () => this.hasRoom
    return {
      get hasRoom() {
        return hasRoom()
      },
      take: async (id, file) => this.take(tenant, id, file),
      find: (id) => this.find(id),
    }
  }

  /** Whether somebody should begin, or go on, to write what is to be taken. */
  get hasRoom(): boolean {
    return this.#options.maxBytes > 0 && this.#options.hasRoom()
  }

  find(id: string): Kept | undefined {
    return this.#kept.get(id)
  }

  list(): readonly Kept[] {
    return [...this.#kept.values()]
  }

  /** What is removed while it is read is read to its end. */
  async read(id: string, signal?: AbortSignal): Promise<{ size: number; bytes: AsyncIterable<Buffer> } | undefined> {
    const kept = this.#kept.get(id)
    if (!kept) return undefined
    const file = await open(this.#pathOf(kept)).catch(() => undefined)
    if (!file) return undefined
    return { size: kept.bytes, bytes: createReadStream('', { fd: file, ...(signal ? { signal } : {}) }) }
  }

  /** Idempotent. */
  async remove(id: string): Promise<void> {
    const kept = this.#kept.get(id)
    if (!kept) return
    this.#kept.delete(id)
    await rm(this.#pathOf(kept), { force: true })
  }

  /** Removes what is too old, then what is too much. What cannot be removed is logged, and tried by the next process. */
  async sweep(): Promise<void> {
    const { retentionMs, maxBytes, clock } = this.#options
    const oldest = clock.now() - retentionMs
    for (const kept of this.list()) if (kept.at < oldest) await this.#drop(kept)
    while (bytesOf(this.list()) > maxBytes) {
      const [most] = [...Map.groupBy(this.list(), ({ tenant }) => tenant).values()].toSorted(
        (one, other) => bytesOf(other) - bytesOf(one),
      )
      const first = most?.[0]
      if (!first) return
      await this.#drop(first)
    }
  }

  close(): void {
    clearInterval(this.#sweeping)
  }

  async #drop({ id }: Kept): Promise<void> {
    await this.remove(id).catch((error: unknown) =>
      this.#options.log.error('what was kept cannot be removed', { id, error }),
    )
  }

  async #load(): Promise<void> {
    const { dir, log } = this.#options
    const found: Kept[] = []
    for (const path of await readdir(dir, { recursive: true })) {
      const [tenant = '', id, ...deeper] = path.split('/')
      if (id === undefined && isTenant(tenant)) continue
      if (id === undefined || !ID.test(id) || deeper.length > 0) {
        log.warn('what is in the vault and not of it is left alone', { path })
        continue
      }
      try {
        const { size, mtimeMs } = await stat(join(dir, path))
        found.push({ id, tenant, bytes: size, at: mtimeMs })
      } catch (error) {
        log.error('what was kept cannot be found any more', { id, error })
      }
    }
    for (const kept of found.toSorted((a, b) => a.at - b.at)) this.#kept.set(kept.id, kept)
  }

  #pathOf({ tenant, id }: Pick<Kept, 'tenant' | 'id'>): string {
    return join(this.#options.dir, tenant, id)
  }
}

function bytesOf(kept: readonly Kept[]): number {
  return kept.reduce((sum, { bytes }) => sum + bytes, 0)
}

function isTenant(name: string): boolean {
  return tenantId.safeParse(name).success
}

/** Brings it to the disk; answers its size. */
async function flushFile(path: string): Promise<number> {
  const file = await open(path)
  try {
    await file.sync()
    return (await file.stat()).size
  } finally {
    await file.close()
  }
}
