import { AirlockError, type FileEntry, type SandboxFiles } from '@airlock/sdk'
import { createWriteStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { OutputPrinter } from './attach.ts'
import type { Terminal } from '../text/terminal.ts'
import type { Tally } from '../text/tally.ts'

const MOST_ENTRIES = 10_000
const MAX_DEPTH = 128

/** Copies a file or directory out of a sandbox; into a directory that is there, under its own name. */
export async function copyOut(
  files: SandboxFiles,
  { from, to, terminal }: { readonly from: string; readonly to: string; readonly terminal: Terminal },
  tally: Tally,
): Promise<void> {
  if (to === '-') return print(files, from, { terminal, tally })
  const found = await files.stat(from)
  const target = (await isDirectory(to)) ? join(to, safeName(posix.basename(from) || found.name)) : to
  if (found.kind === 'directory') return copyTree(files, { from, to: target, depth: 0 }, tally)
  await download(files, { from, to: target }, tally)
}

interface Branch {
  readonly from: string
  readonly to: string
  readonly depth: number
}

async function copyTree(files: SandboxFiles, { from, to, depth }: Branch, tally: Tally): Promise<void> {
  if (depth > MAX_DEPTH) throw new AirlockError('invalid_path', `${from} is too deep.`)
  const { entries, truncated } = await files.list(from, { limit: MOST_ENTRIES })
  if (truncated) throw new AirlockError('invalid_request', `${from} has more than ${MOST_ENTRIES} entries.`)
  await mkdir(to, { recursive: true })
  for (const entry of entries) {
    // What is not UTF-8 has a path that is ASCII.
    const inner = { from: entry.path, to: join(to, safeName(posix.basename(entry.path))), depth: depth + 1 }
    if (entry.kind === 'directory') await copyTree(files, inner, tally)
    else if (entry.kind === 'file') await download(files, inner, tally)
    else tally.skipped.push(inner.from)
  }
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
