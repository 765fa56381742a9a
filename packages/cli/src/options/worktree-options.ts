import { realpathSync } from 'node:fs'
import { UsageError } from '../usage.ts'

export interface WorktreeOptions {
  readonly worktree?: string
}

/** `DIR` or `DIR@COMMIT`: a directory of this machine, by its exact path. */
export function toWorktree(text: string): { readonly source: string; readonly at?: string } {
  const [, dir = text, at] = /^(.+)@([^@/][^@]*)$/u.exec(text) ?? []
  const source = realOf(text) ?? realOf(dir)
  if (source === undefined)
    throw new UsageError(`There is no directory ${dir}.`, 'For example: --worktree . or --worktree ~/project@main')
  return source === realOf(text) || at === undefined ? { source } : { source, at }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
