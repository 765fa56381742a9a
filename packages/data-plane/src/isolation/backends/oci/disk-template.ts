import { open, type FileHandle } from 'node:fs/promises'
import { findTool, runTool } from './run-tool.ts'

/** A fresh file system is far smaller. */
const MAX_BYTES = 8 * 1024 * 1024

/** All that is not zero in a sparse file. */
export interface DiskTemplate {
  readonly bytes: number
  readonly pieces: readonly { readonly at: number; readonly data: Buffer }[]
}

/** `extentsProgram` says where a file has data. Undefined when it cannot be read: then there is no shortcut, and nothing is lost. */
export async function readTemplate(path: string, extentsProgram: string): Promise<DiskTemplate | undefined> {
  const python = findTool('python3')
  if (python === undefined) return undefined
  const { exitCode, stdout } = await runTool(python, ['-I', '-S', extentsProgram, path])
  const extents = stdout.split('\n').filter(Boolean).map(parseExtent)
  if (exitCode !== 0 || extents.reduce((sum, { length }) => sum + length, 0) > MAX_BYTES) return undefined
  const file = await open(path, 'r')
  try {
    const pieces = await Promise.all(
      extents.map(async ({ at, length }) => ({ at, data: await readPiece(file, at, length) })),
    )
    return { bytes: (await file.stat()).size, pieces }
  } finally {
    await file.close()
  }
}

/** Makes a file equal to the one that the template was read from. */
export async function writeTemplate(path: string, { bytes, pieces }: DiskTemplate): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.truncate(bytes)
    for (const { at, data } of pieces) await writePiece(file, at, data)
  } finally {
    await file.close()
  }
}

/** A write may stop early, as where the host's own disk is full: the next one then says why. */
async function writePiece(file: FileHandle, at: number, data: Buffer): Promise<void> {
  for (let done = 0; done < data.length;)
    done += (await file.write(data, done, data.length - done, at + done)).bytesWritten
}

async function readPiece(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at)
  return buffer.subarray(0, bytesRead)
}

function parseExtent(line: string): { readonly at: number; readonly length: number } {
  const [at = 0, length = 0] = line.split(' ').map(Number)
  return { at, length }
}
