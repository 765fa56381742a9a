import { AirlockError, type SandboxFiles } from '@airlock/sdk'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, posix, resolve } from 'node:path'
import { ignoreOf } from './ignore-file.ts'
import { measureTree } from './measure-tree.ts'
import type { Tally } from '../text/tally.ts'
import { formatBytes } from '../text/units.ts'

/** From here on a copy says how large it is before it begins. */
const LARGE = { files: 10_000, bytes: 256 * 1024 * 1024 }

export interface CopyIn {
  readonly from: string
  readonly to: string
  /** Leaves nothing out. */
  readonly all: boolean
  /** Tells a person what a copy leaves out, and how large it is. */
  readonly note: (text: string) => void
}

/** Copies a local file or directory into a sandbox; into a directory that is there, under its own name, and of `.` what is in it. */
export async function copyIn(files: SandboxFiles, copy: CopyIn, tally: Tally): Promise<void> {
  const { from, to } = copy
  if (from === '-') return upload(files, process.stdin, { to, tally })
  const found = await stat(from)
  const isInside = to.endsWith('/') || (await isDirectory(files, to))
  const target = isInside && basename(from) !== '.' ? posix.join(to, basename(resolve(from))) : to
  if (found.isDirectory()) return copyTree(files, { ...copy, to: target }, tally)
  await upload(files, createReadStream(from), { to: target, tally })
}

async function copyTree(files: SandboxFiles, { from, to, all, note }: CopyIn, tally: Tally): Promise<void> {
  const ignore = await ignoreOf(from, all)
  const measured = await measureTree(from, ignore)
  if (measured.leftOut.length > 0)
    note(`left out of ${from}: ${measured.leftOut.join(', ')} ("--all" copies everything)`)
  if (measured.files > LARGE.files || measured.bytes > LARGE.bytes)
    note(
      `${from} is large: ${measured.files} files, ${formatBytes(measured.bytes)}. A file .airlockignore in it names what to leave out.`,
    )
  const before = { files: tally.files, bytes: tally.bytes }
  tally.total = { files: before.files + measured.files, bytes: before.bytes + measured.bytes }
  const onProgress = (passed: { readonly files: number; readonly bytes: number }): void => {
    tally.files = before.files + passed.files
    tally.bytes = before.bytes + passed.bytes
  }
  const { skipped } = await files.uploadDirectory(from, to, { ignore, onProgress })
  tally.skipped.push(...skipped)
  tally.total = undefined
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
