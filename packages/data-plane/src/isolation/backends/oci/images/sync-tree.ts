import { closeSync, constants, fsyncSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const { O_RDONLY, O_NOFOLLOW } = constants

/** What is named after its content must have it after a power loss too. `itself`: the directory, not what is in it. */
export function syncTree(path: string, what: 'all' | 'itself' = 'all'): void {
  if (what === 'all')
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inner = join(path, entry.name)
      if (entry.isDirectory()) syncTree(inner)
      else if (entry.isFile()) sync(inner)
    }
  sync(path)
}

function sync(path: string): void {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
