import { AirlockError, type Limits } from '@airlock/contract'
import { chmodSync, mkdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { readTemplate, writeTemplate, type DiskTemplate } from './disk-template.ts'
import { runTool } from './run-tool.ts'

/** The directories on a disk that become `/workspace` and `/home/user`. */
export const DISK_DIRS = { workspace: 'workspace', home: 'home' } as const

const BLOCK = 4096
/** Those that a file system has for itself, with the directories that are on every disk. */
export const OWN_INODES = 16

export type DiskSize = Pick<Limits, 'diskBytes' | 'inodes'>

/** Sizes whose empty disk is remembered. */
const MAX_TEMPLATES = 16

/**
 * Makes the disks of sandboxes: sparse files with an ext4 file system. The first of a size is formatted; the others are
 * copies of the little that formatting wrote. They share the id of the file system, which nothing looks at.
 */
export class Disks {
  readonly #templates = new Map<string, DiskTemplate | 'unknown'>()
  readonly #tools: { readonly mkfs: string; readonly extents: string }
  /** What is on every new disk. */
  readonly #tree: string

  /** `extents`: the program that says where a file has data. */
  constructor(tools: { readonly mkfs: string; readonly extents: string }, stateDir: string) {
    this.#tools = tools
    this.#tree = join(stateDir, 'images', 'disk')
    for (const dir of [this.#tree, ...Object.values(DISK_DIRS).map((name) => join(this.#tree, name))]) {
      mkdirSync(dir, { recursive: true })
      chmodSync(dir, 0o755)
    }
  }

  /** The directories on it belong to the host's root; the launcher gives them to the sandbox's user. */
  async make(path: string, size: DiskSize): Promise<void> {
    const key = `${size.diskBytes} ${size.inodes}`
    const known = this.#templates.get(key)
    if (known !== undefined && known !== 'unknown') return writeTemplate(path, known)
    await this.#format(path, size)
    // Those that are made at the same time are formatted too: only one is read.
    if (known === undefined) await this.#remember(path, key)
  }

  async #remember(path: string, key: string): Promise<void> {
    const [oldest] = this.#templates.keys()
    if (this.#templates.size >= MAX_TEMPLATES && oldest !== undefined) this.#templates.delete(oldest)
    this.#templates.set(key, 'unknown')
    const template = await readTemplate(path, this.#tools.extents)
    if (template) this.#templates.set(key, template)
  }

  async #format(path: string, size: DiskSize): Promise<void> {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.truncate(wholeBlocks(size.diskBytes))
    } finally {
      await file.close()
    }
    const inodes = size.inodes + OWN_INODES
    // No journal: a disk does not outlive a crash of the host. The file is zero, so nothing needs to be wiped.
    const format = ['-q', '-F', '-b', String(BLOCK), '-m', '0', '-N', String(inodes)]
    const features = ['-O', '^has_journal,^resize_inode', '-E', 'lazy_itable_init=1,nodiscard,root_owner=0:0']
    const result = await runTool(this.#tools.mkfs, [...format, ...features, '-d', this.#tree, path], 60_000)
    if (result.exitCode !== 0)
      throw new AirlockError('start_failed', 'The disk of the sandbox could not be made.', { cause: result.stderr })
  }
}

export function wholeBlocks(bytes: number): number {
  return Math.floor(bytes / BLOCK) * BLOCK
}
