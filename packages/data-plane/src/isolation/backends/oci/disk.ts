import { AirlockError } from '@airlock/contract'
import { chmodSync, mkdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { runTool } from './run-tool.ts'

/** The directories on a disk that become `/workspace` and `/home/user`. */
export const DISK_DIRS = { workspace: 'workspace', home: 'home' } as const

const BLOCK = 4096
const BYTES_PER_INODE = 16_384
const MIN_INODES = 1024
const MAX_INODES = 4 * 1024 * 1024

/** Makes the disks of sandboxes: sparse files with an ext4 file system. */
export class Disks {
  readonly #mkfs: string
  /** What is on every new disk. */
  readonly #tree: string

  constructor(mkfs: string, stateDir: string) {
    this.#mkfs = mkfs
    this.#tree = join(stateDir, 'images', 'disk')
    for (const dir of [this.#tree, ...Object.values(DISK_DIRS).map((name) => join(this.#tree, name))]) {
      mkdirSync(dir, { recursive: true })
      chmodSync(dir, 0o755)
    }
  }

  /** The directories on it belong to the host's root; the launcher gives them to the sandbox's user. */
  async make(path: string, bytes: number): Promise<void> {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.truncate(Math.floor(bytes / BLOCK) * BLOCK)
    } finally {
      await file.close()
    }
    const inodes = Math.min(MAX_INODES, Math.max(MIN_INODES, Math.floor(bytes / BYTES_PER_INODE)))
    // No journal: a disk does not outlive a crash of the host. The file is zero, so nothing needs to be wiped.
    const format = ['-q', '-F', '-b', String(BLOCK), '-m', '0', '-N', String(inodes)]
    const features = ['-O', '^has_journal,^resize_inode', '-E', 'lazy_itable_init=1,nodiscard,root_owner=0:0']
    const result = await runTool(this.#mkfs, [...format, ...features, '-d', this.#tree, path], 60_000)
    if (result.exitCode !== 0)
      throw new AirlockError('start_failed', 'The disk of the sandbox could not be made.', { cause: result.stderr })
  }
}
