import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { canonical, isSignedBy } from '@airlock/audit'
import { AirlockError, droppedHead } from '@airlock/contract'
import { z } from 'zod'
import type { ChainPlace } from './tail.ts'
import { isCode, readExactly, syncDir } from './segments.ts'

const SLOT_BYTES = 4096
const SLOTS = 2

const slot = z.strictObject({
  head: droppedHead,
  /** The chain has a record of it. */
  recorded: z.boolean(),
})
export type Dropped = z.infer<typeof slot>

/**
 * The signed statement of what retention dropped, beside the chain that it vouches for. It has its place on disk before
 * it is needed, so that it can be written when the disk is full, and two slots of which one is always whole: a crash
 * leaves the old statement or the new one.
 */
export class DroppedFile {
  readonly #place: ChainPlace
  #current: Dropped | undefined
  #slot = 0

  private constructor(place: ChainPlace, found: { readonly dropped: Dropped | undefined; readonly slot: number }) {
    this.#place = place
    this.#current = found.dropped
    this.#slot = found.slot
  }

  /** A statement that is not ours counts for nothing: what is gone then shows as missing. */
  static async open(place: ChainPlace): Promise<DroppedFile> {
    const slots = await readSlots(place)
    const found = slots
      .map((dropped, index) => ({ dropped, slot: index }))
      .filter((one): one is { dropped: Dropped; slot: number } => one.dropped !== undefined)
      .sort(
        (a, b) => b.dropped.head.seq - a.dropped.head.seq || Number(b.dropped.recorded) - Number(a.dropped.recorded),
      )
    return new DroppedFile(place, found[0] ?? { dropped: undefined, slot: 0 })
  }

  get current(): Dropped | undefined {
    return this.#current
  }

  /** Takes its place on disk. */
  async prepare(): Promise<void> {
    const handle = await open(pathOf(this.#place), 'wx', 0o600).catch((error: unknown) => {
      if (isCode(error, 'EEXIST')) return undefined
      throw error
    })
    if (!handle) return
    try {
      await handle.writeFile(' '.repeat(SLOT_BYTES * SLOTS))
      await handle.sync()
    } finally {
      await handle.close()
    }
    await syncDir(this.#place.dir)
  }

  /** Durable when it resolves. */
  async write(dropped: Dropped): Promise<void> {
    const text = canonical(dropped)
    if (text.length >= SLOT_BYTES) throw new AirlockError('internal', 'A statement is too long.')
    await this.prepare()
    const next = (this.#slot + 1) % SLOTS
    const handle = await open(pathOf(this.#place), 'r+')
    try {
      await handle.write(Buffer.from(text.padEnd(SLOT_BYTES)), 0, SLOT_BYTES, next * SLOT_BYTES)
      await handle.sync()
    } finally {
      await handle.close()
    }
    this.#current = dropped
    this.#slot = next
  }
}

function pathOf({ dir }: ChainPlace): string {
  return join(dir, 'dropped')
}

async function readSlots(place: ChainPlace): Promise<readonly (Dropped | undefined)[]> {
  // What cannot be read states nothing.
  const handle = await open(pathOf(place), 'r').catch(() => undefined)
  if (!handle) return []
  try {
    const { size } = await handle.stat()
    return await Promise.all(
      Array.from({ length: SLOTS }, async (_, index) =>
        size >= (index + 1) * SLOT_BYTES ? readSlot(handle, place, index) : undefined,
      ),
    )
  } finally {
    await handle.close()
  }
}

async function readSlot(handle: FileHandle, place: ChainPlace, index: number): Promise<Dropped | undefined> {
  try {
    const text = (await readExactly(handle, index * SLOT_BYTES, SLOT_BYTES)).toString('utf8')
    const dropped = slot.parse(JSON.parse(text))
    const isOurs = dropped.head.tenant === place.tenant && isSignedBy(dropped.head, place.keys.public)
    return isOurs ? dropped : undefined
  } catch {
    // Empty, torn, changed or unreadable: no statement.
    return undefined
  }
}
