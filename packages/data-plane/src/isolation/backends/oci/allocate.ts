import { AirlockError } from '@airlock/contract'
import { KeyedLock, type Log } from '@airlock/std'
import { readdir, stat } from 'node:fs/promises'
import type { HostDisk } from '../../host-disk.ts'
import { pathsOf, type Places, sandboxesDir } from './paths.ts'
import { requireTool, runTool } from './run-tool.ts'

const LIMIT_MS = 60_000
const BLOCK_BYTES = 512

/**
 * Sets the blocks of disks aside on the host, so that nothing which is written inside can fail for want of them. Where the node
 * promises more disk than it has they stay sparse, and only the reserve is looked after.
 */
export class Allocation {
  readonly #hostDisk: HostDisk
  readonly #log: Log
  /** Undefined: disks stay sparse. */
  readonly #fallocate: string | undefined
  readonly #turns = new KeyedLock()
  #isUnsupported = false

  constructor(options: { readonly hostDisk: HostDisk; readonly log: Log; readonly mode: 'whole' | 'sparse' }) {
    this.#hostDisk = options.hostDisk
    this.#log = options.log
    this.#fallocate = options.mode === 'whole' ? requireTool('fallocate', 'util-linux') : undefined
  }

  /** Sets aside what a disk of so many bytes does not have yet. Fails closed: the reserve of the host is left, or it throws. */
  async allocate(disk: string, bytes: number): Promise<void> {
    await this.#turns.run('disk', async () => {
      const missing = Math.max(0, bytes - (await stat(disk)).blocks * BLOCK_BYTES)
      if (missing > 0) this.#hostDisk.assertRoom(this.#isWhole ? missing : 0)
      if (missing > 0 && this.#isWhole) await this.#take(disk, bytes)
    })
  }

  get #isWhole(): boolean {
    return this.#fallocate !== undefined && !this.#isUnsupported
  }

  async #take(disk: string, bytes: number): Promise<void> {
    const { exitCode, stderr } = await runTool(this.#fallocate ?? '', ['--length', String(bytes), disk], LIMIT_MS)
    if (exitCode === 0) return
    if (!stderr.includes('not supported')) throw new AirlockError('host_disk_full', undefined, { cause: stderr })
    this.#isUnsupported = true
    this.#log.warn('the file system of the state directory cannot set blocks aside: disks stay sparse', { stderr })
  }
}

/** What the disks of all sandboxes take on the host, sparse or not; one that goes meanwhile takes nothing. */
export async function takenBy(places: Places): Promise<number> {
  let taken = 0
  for (const id of await readdir(sandboxesDir(places))) {
    const found = await stat(pathsOf(places, id).disk).catch(() => undefined)
    taken += (found?.blocks ?? 0) * BLOCK_BYTES
  }
  return taken
}
