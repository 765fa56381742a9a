import type { TarSummary } from '@airlock/std/tar'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { JudgedArchive } from '../../sandboxes/archive.ts'

/** A directory as tar makes it, with everything that is in it. */
export function packDirectory(path: string): AsyncIterable<Buffer> {
  return spawn('tar', ['-cf', '-', '-C', path, '.'], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout
}

export async function unpackInto(path: string, bytes: AsyncIterable<Buffer>): Promise<TarSummary> {
  await mkdir(path, { recursive: true })
  const archive = new JudgedArchive(async () => {})
  const tar = spawn('tar', ['-xf', '-', '-C', path], { stdio: ['pipe', 'inherit', 'inherit'] })
  const done = once(tar, 'close')
  await pipeline(archive.judge(bytes), tar.stdin)
  await done
  return archive.summary
}
