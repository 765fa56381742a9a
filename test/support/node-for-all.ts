import { chmod, copyFile, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** A Node that every user can start, also when this tree lies in a private directory. */
    nodeForAll: string
  }
}

/** Copies Node only when another user cannot reach ours. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (await isReachable(process.execPath)) {
    project.provide('nodeForAll', process.execPath)
    return undefined
  }
  const directory = await mkdtemp(join(tmpdir(), 'airlock-node-'))
  const node = join(directory, 'node')
  await chmod(directory, 0o755)
  await copyFile(process.execPath, node)
  await chmod(node, 0o755)
  project.provide('nodeForAll', node)
  return async () => await rm(directory, { recursive: true })
}

/** Whether every directory above lets all users through. */
async function isReachable(path: string): Promise<boolean> {
  const parent = dirname(path)
  if (parent === path) return true
  const { mode } = await stat(parent)
  return (mode & 0o001) !== 0 && (await isReachable(parent))
}
