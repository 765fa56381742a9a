import { statSync } from 'node:fs'
import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeptOutput } from '@airlock/contract'
import type { Kept, VaultShare } from '../vault/vault.ts'

const MIB = 1024 * 1024
/** Beyond this the output of a command really is cut. */
export const FULL_OUTPUT_BYTES = 64 * MIB
/** Of all that runs in one sandbox together. */
const SANDBOX_BYTES = 256 * MIB

/** How files of commands that run are told from others in their directory. */
export const FULL_SUFFIX = '.full'

/**
 * The whole output of commands of one sandbox that said more than their caller wants to hear, both streams as they came. It is
 * a file beside the spool while the command runs, and goes with the sandbox; once the command has ended it is in the vault.
 */
export class FullOutputs {
  readonly #directory: string
  readonly #vault: VaultShare
  readonly #sizes = new Map<string, number>()
  /** Something of them is missing. */
  readonly #cut = new Set<string>()

  constructor(directory: string, vault: VaultShare) {
    this.#directory = directory
    this.#vault = vault
  }

  /** How much there is of it; 0 as long as nothing was too much. */
  sizeOf(id: string): number {
    const known = this.#sizes.get(id)
    if (known !== undefined) return known
    const size = statSync(this.#path(id), { throwIfNoEntry: false })?.size ?? 0
    if (size > 0) this.#sizes.set(id, size)
    return size
  }

  /** Goes on after what there is. What finds no room is left out, and so is everything after it: the command goes on. */
  async append(id: string, chunks: readonly Buffer[]): Promise<void> {
    const bytes = Buffer.concat(chunks)
    const before = this.sizeOf(id)
    const fits = this.#total() + bytes.length <= SANDBOX_BYTES && this.#vault.hasRoom
    if (!fits || this.#cut.has(id)) return void this.#cut.add(id)
    try {
      await appendFile(this.#path(id), bytes, { mode: 0o600 })
      this.#sizes.set(id, before + bytes.length)
    } catch {
      // Said in the result: it is cut.
      this.#cut.add(id)
    }
  }

  /** A part of the output is missing in what comes next. */
  cut(id: string): void {
    this.#cut.add(id)
  }

  /**
   * The command has ended after it `produced` so much, or nobody knows: what there is of it is kept. Null when nothing was too
   * much, or the vault cannot take it.
   */
  async keep(id: string, produced: number | 'unknown'): Promise<KeptOutput | null> {
    // It may be there already: we died before anybody was told.
    const kept = this.sizeOf(id) > 0 ? await this.#take(id) : this.#vault.find(id)
    return kept ? { bytes: kept.bytes, truncated: kept.bytes !== produced } : null
  }

  /** As if it had never said too much. */
  async drop(id: string): Promise<void> {
    this.#cut.delete(id)
    if (this.#sizes.delete(id)) await rm(this.#path(id), { force: true })
  }

  async #take(id: string): Promise<Kept | undefined> {
    const kept = await this.#vault.take(id, this.#path(id))
    if (!kept) await this.drop(id)
    this.#sizes.delete(id)
    this.#cut.delete(id)
    return kept
  }

  #total(): number {
    return [...this.#sizes.values()].reduce((sum, size) => sum + size, 0)
  }

  #path(id: string): string {
    return join(this.#directory, `${id}${FULL_SUFFIX}`)
  }
}
