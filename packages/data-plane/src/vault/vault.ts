import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Log } from '@airlock/std'

export interface VaultOptions {
  readonly dir: string
  /** What is older goes. */
  readonly retentionMs: number
  /** Of all together; beyond it the oldest goes. */
  readonly maxBytes: number
  /** Whether the disk has room for more of it: the reserve of the host is not for this. */
  readonly hasRoom: () => boolean
  readonly clock: Clock
  readonly log: Log
}

export interface Kept {
  readonly id: string
  readonly bytes: number
  /** Since when, epoch milliseconds. */
  readonly at: number
}

/** Ids name files: nothing else does. */
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
  async take(id: string, file: string): Promise<Kept | undefined> {
    const { dir, maxBytes, clock } = this.#options
    const bytes = await flushFile(file)
    if (bytes > maxBytes || !ID.test(id)) return undefined
    await rename(file, join(dir, id))
    await flushFile(dir)
    const kept = { id, bytes, at: clock.now() }
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    await this.sweep()
    return kept
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
    const file = await open(join(this.#options.dir, id)).catch(() => undefined)
    if (!file) return undefined
    return { size: kept.bytes, bytes: createReadStream('', { fd: file, ...(signal ? { signal } : {}) }) }
  }

  /** Idempotent. */
  async remove(id: string): Promise<void> {
    if (!this.#kept.delete(id)) return
    await rm(join(this.#options.dir, id), { force: true })
  }

  /** Removes what is too old, and the oldest of what is too much. What cannot be removed is logged, and tried by the next process. */
  async sweep(): Promise<void> {
    const { retentionMs, maxBytes, clock, log } = this.#options
    const oldest = clock.now() - retentionMs
    let total = this.list().reduce((sum, { bytes }) => sum + bytes, 0)
    for (const { id, at, bytes } of this.list()) {
      if (at >= oldest && total <= maxBytes) continue
      total -= bytes
      await this.remove(id).catch((error: unknown) => log.error('what was kept cannot be removed', { id, error }))
    }
  }

  close(): void {
    clearInterval(this.#sweeping)
  }

  async #load(): Promise<void> {
    const { dir, log } = this.#options
    const found: Kept[] = []
    for (const name of await readdir(dir)) {
      if (!ID.test(name)) {
        log.warn('what is in the vault and not of it is left alone', { name })
        continue
      }
      const { size, mtimeMs } = await stat(join(dir, name))
      found.push({ id: name, bytes: size, at: mtimeMs })
    }
    for (const kept of found.toSorted((a, b) => a.at - b.at)) this.#kept.set(kept.id, kept)
  }
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
