import { AirlockError } from '@airlock/contract'
import { chmodSync, mkdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { readTemplate, writeTemplate, type DiskTemplate } from './disk-template.ts'
import { runTool } from './run-tool.ts'

/** The directories on a disk that become `/workspace` and `/home/user`. */
export const DISK_DIRS = { workspace: 'workspace', home: 'home' } as const

const BLOCK = 4096
const BYTES_PER_INODE = 16_384
const MIN_INODES = 1024
const MAX_INODES = 4 * 1024 * 1024

/** Sizes whose empty disk is remembered. */
const MAX_TEMPLATES = 16

/**
 * Makes the disks of sandboxes: sparse files with an ext4 file system. The first of a size is formatted; the others are
 * copies of the little that formatting wrote. They share the id of the file system, which nothing looks at.
 */
export class Disks {
  readonly #templates = new Map<number, DiskTemplate | 'unknown'>()
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
    const known = this.#templates.get(bytes)
    if (known !== undefined && known !== 'unknown') return writeTemplate(path, known)
    await this.#format(path, bytes)
    // Those that are made at the same time are formatted too: only one is read.
    if (known === undefined) await this.#remember(path, bytes)
  }

  async #remember(path: string, bytes: number): Promise<void> {
    const [oldest] = this.#templates.keys()
    if (this.#templates.size >= MAX_TEMPLATES && oldest !== undefined) this.#templates.delete(oldest)
    this.#templates.set(bytes, 'unknown')
    const template = await readTemplate(path)
    if (template) this.#templates.set(bytes, template)
  }

  async #format(path: string, bytes: number): Promise<void> {
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
