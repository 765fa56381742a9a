import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ignore } from './ignore-file.ts'

export interface Measured {
  readonly files: number
  readonly bytes: number
  /** What is left out, by name or path: the first few. */
  readonly leftOut: readonly string[]
}

const SHOWN = 5

/** How much of a local directory would be copied. */
export async function measureTree(directory: string, ignore: Ignore | undefined): Promise<Measured> {
  const measured = { files: 0, bytes: 0, leftOut: [] as string[] }
  const inside = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(directory, below), { withFileTypes: true })) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      const kind = entry.isDirectory() ? 'directory' : entry.isFile() ? 'file' : 'symlink'
      if (ignore?.(path, kind) === true) {
        if (measured.leftOut.length < SHOWN) measured.leftOut.push(path)
      } else if (kind === 'directory') await inside(path)
      else if (kind === 'file') {
        measured.files++
        measured.bytes += (await lstat(join(directory, path))).size
      }
    }
  }
  await inside('')
  return measured
}
