import { AirlockError, type FileEntry } from '@airlock/contract'
import { lstat, rm, rmdir } from 'node:fs/promises'
import { basename } from 'node:path'

export async function stat(path: string, shown: string): Promise<FileEntry> {
  const found = await lstat(path).catch(rethrowFileError)
  const kinds = [
    ['file', found.isFile()],
    ['directory', found.isDirectory()],
    ['symlink', found.isSymbolicLink()],
  ] as const
  const kind = kinds.find(([, is]) => is)?.[0] ?? 'other'
  const { size, mode } = found
  return { name: basename(path), path: shown, kind, size, mode: mode & 0o7777, modifiedAt: found.mtime.toISOString() }
}

export async function remove(path: string, recursive: boolean): Promise<undefined> {
  if ((await lstat(path)).isDirectory() && !recursive) await rmdir(path)
  else await rm(path, { recursive })
  return undefined
}

const FILE_ERRORS = {
  ENOENT: 'file_not_found',
  ENOTDIR: 'not_a_directory',
  EISDIR: 'is_a_directory',
  EEXIST: 'file_exists',
  ENOTEMPTY: 'directory_not_empty',
} as const

export function rethrowFileError(cause: NodeJS.ErrnoException): never {
  const known = Object.entries(FILE_ERRORS).find(([code]) => code === cause.code)?.[1]
  throw known ? new AirlockError(known, undefined, { cause }) : cause
}
