import { AirlockError, type FileEntry, type SandboxFiles } from '@airlock/sdk'
import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { OutputPrinter } from './attach.ts'
import { isUsual } from './ignore-file.ts'
import type { Terminal } from '../text/terminal.ts'
import type { Tally } from '../text/tally.ts'

export interface CopyOut {
  readonly from: string
  readonly to: string
  /** Leaves nothing out. */
  readonly all: boolean
  readonly terminal: Terminal
}

/** Copies a file or directory out of a sandbox; into a directory that is there, under its own name. */
export async function copyOut(files: SandboxFiles, copy: CopyOut, tally: Tally): Promise<void> {
  const { from, to, terminal } = copy
  if (to === '-') return print(files, from, { terminal, tally })
  const found = await files.stat(from)
  const target = (await isDirectory(to)) ? join(to, safeName(posix.basename(from) || found.name)) : to
  if (found.kind === 'directory') return copyTree(files, { ...copy, to: target }, tally)
  await download(files, { from, to: target }, tally)
}

async function copyTree(files: SandboxFiles, { from, to, all }: CopyOut, tally: Tally): Promise<void> {
  const before = { files: tally.files, bytes: tally.bytes }
  const onProgress = (passed: { readonly files: number; readonly bytes: number }): void => {
    tally.files = before.files + passed.files
    tally.bytes = before.bytes + passed.bytes
  }
  const { skipped } = await files.downloadDirectory(from, to, { onProgress, ...(all ? {} : { ignore: isUsual }) })
  tally.skipped.push(...skipped)
}

/** Fails closed: a name that a sandbox made up must not lead out of the directory we copy to. */
function safeName(name: FileEntry['name']): string {
  const isPlain = name !== '' && name !== '.' && name !== '..' && name === basename(name) && !name.includes('\0')
  if (!isPlain) throw new AirlockError('invalid_path', 'The sandbox has a file with a name that is no name.')
  return name
}

async function download(
  files: SandboxFiles,
  { from, to }: { readonly from: string; readonly to: string },
  tally: Tally,
): Promise<void> {
  tally.files++
  await pipeline(counted(files.readStream(from), tally), createWriteStream(to))
}

async function print(
  files: SandboxFiles,
  from: string,
  { terminal, tally }: { readonly terminal: Terminal; readonly tally: Tally },
): Promise<void> {
  const printer = new OutputPrinter(terminal)
  tally.files++
  for await (const chunk of counted(files.readStream(from), tally)) await printer.write('stdout', chunk)
  await printer.finish()
}

async function* counted(source: AsyncIterable<Uint8Array>, tally: Tally): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    tally.bytes += chunk.length
    yield chunk
  }
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found?.isDirectory() ?? false
}
