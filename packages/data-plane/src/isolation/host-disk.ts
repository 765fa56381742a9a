import { AirlockError, type NodeDisk } from '@airlock/contract'
import { statfsSync } from 'node:fs'

const MIB = 1024 * 1024
/** Of a reserve that nobody set, as a part of the file system. */
const DEFAULT_RESERVE = { part: 0.05, least: 1024 * MIB, most: 10 * 1024 * MIB } as const
/** New commands are refused when this part of the reserve is left: the rest is for evidence and the store. */
const OUTPUT_PART = 0.5
const WATCH_EVERY_MS = 200

/**
 * The file system of the state directory. Sandboxes and images never take its reserve: that is for evidence, the store, logs and
 * the system. What commands say may take half of it.
 */
export class HostDisk {
  readonly reserveBytes: number
  readonly #dir: string

  constructor(options: { readonly dir: string; readonly reserveBytes: number | null }) {
    this.#dir = options.dir
    this.reserveBytes = options.reserveBytes ?? defaultReserve(options.dir)
  }

  /** What programs without privileges may still write. */
  freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#dir)
    return bavail * bsize
  }

  /** With what the disks of sandboxes take, read in between: a disk that appears or goes meanwhile is not counted as free too. */
  async read(readTaken: () => Promise<number>): Promise<NodeDisk> {
    const before = this.freeBytes()
    const takenBytes = await readTaken()
    return { freeBytes: Math.min(before, this.freeBytes()), takenBytes, reserveBytes: this.reserveBytes }
  }

  /** Fails closed: throws unless so much can be taken and the reserve is left. */
  assertRoom(bytes = 0): void {
    if (!this.hasRoom(bytes)) throw new AirlockError('host_disk_full')
  }

  hasRoom(bytes = 0): boolean {
    return this.freeBytes() - bytes >= this.reserveBytes
  }

  /** The same for what commands and steps say, which is kept on the host. */
  assertRoomForOutput(): void {
    if (this.freeBytes() < this.reserveBytes * OUTPUT_PART) throw new AirlockError('host_disk_full')
  }

  /** Runs what fills the disk by and by, and aborts it as soon as only the reserve is left. */
  async guard<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.assertRoom()
    const full = new AbortController()
    const watch = setInterval(() => {
      if (this.freeBytes() < this.reserveBytes) full.abort(new AirlockError('host_disk_full'))
    }, WATCH_EVERY_MS)
    try {
      return await work(signal ? AbortSignal.any([signal, full.signal]) : full.signal)
    } catch (error) {
      throw full.signal.aborted ? full.signal.reason : error
    } finally {
      clearInterval(watch)
    }
  }
}

function defaultReserve(dir: string): number {
  const { blocks, bsize } = statfsSync(dir)
  const { part, least, most } = DEFAULT_RESERVE
  return Math.floor(Math.min(most, Math.max(least, blocks * bsize * part)))
}
