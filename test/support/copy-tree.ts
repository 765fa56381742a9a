import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))

/** Another directory that a server can be started from. */
export function copyTree(): string {
  const tree = mkdtempSync(join(tmpdir(), 'airlock-tree-'))
  chmodSync(tree, 0o755)
  for (const name of ['dist', 'packages', 'node_modules', 'package.json'])
    try {
      execFileSync('cp', ['-al', join(REPOSITORY, name), tree], { stdio: 'ignore' })
    } catch {
      // Another file system.
      execFileSync('cp', ['-a', join(REPOSITORY, name), tree])
    }
  return tree
}
