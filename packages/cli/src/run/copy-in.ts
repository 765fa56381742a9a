import { AirlockError, type SandboxFiles } from '@airlock/sdk'
import { createReadStream } from 'node:fs'
import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { posix } from 'node:path'
import type { Tally } from '../text/tally.ts'

/** Copies a local file or directory into a sandbox; into a directory that is there, under its own name, and of `.` what is in it. */
export async function copyIn(
  files: SandboxFiles,
  { from, to }: { readonly from: string; readonly to: string },
  tally: Tally,
): Promise<void> {
  if (from === '-') return upload(files, process.stdin, { to, tally })
  const found = await stat(from)
  const isInside = to.endsWith('/') || (await isDirectory(files, to))
  const target = isInside && basename(from) !== '.' ? posix.join(to, basename(resolve(from))) : to
  if (found.isDirectory()) return copyTree(files, { from, to: target }, tally)
  await upload(files, createReadStream(from), { to: target, tally })
}

async function copyTree(
  files: SandboxFiles,
  { from, to }: { readonly from: string; readonly to: string },
  tally: Tally,
): Promise<void> {
  await files.mkdir(to)
  for (const name of (await readdir(from)).toSorted()) {
    const path = join(from, name)
    const found = await lstat(path)
    if (found.isDirectory()) await copyTree(files, { from: path, to: posix.join(to, name) }, tally)
    else if (found.isFile()) await upload(files, createReadStream(path), { to: posix.join(to, name), tally })
    else tally.skipped.push(path)
  }
}

async function upload(
  files: SandboxFiles,
  source: AsyncIterable<Buffer>,
  { to, tally }: { readonly to: string; readonly tally: Tally },
): Promise<void> {
  tally.files++
  await files.write(to, counted(source, tally))
}

async function* counted(source: AsyncIterable<Buffer>, tally: Tally): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    tally.bytes += chunk.length
    yield chunk
  }
}

async function isDirectory(files: SandboxFiles, path: string): Promise<boolean> {
  try {
    return (await files.stat(path)).kind === 'directory'
  } catch (error) {
    if (error instanceof AirlockError && error.code === 'file_not_found') return false
    throw error
  }
}
