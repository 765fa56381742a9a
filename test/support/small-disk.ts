import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, statfs, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const MIB = 1024 * 1024

/** A file system of its own for the state of a server, small enough to be filled. */
export interface SmallDisk {
  readonly home: string
  freeMb(): Promise<number>
  /** Takes room on it, as anybody on the host may; 0 gives it back. */
  fill(mb: number): Promise<void>
  remove(): Promise<void>
}

export async function makeSmallDisk(mb: number): Promise<SmallDisk> {
  const root = await mkdtemp(join(tmpdir(), 'al-disk-'))
  const [image, home] = [join(root, 'image'), join(root, 'h')]
  await writeFile(image, '')
  await truncate(image, mb * MIB)
  await run('mkfs.ext4', ['-q', '-m', '0', image])
  await run('mount', ['-t', 'ext4', '-o', 'loop,X-mount.mkdir', image, home])
  await chmod(root, 0o711)
  await chmod(home, 0o711)
  const filler = join(home, 'filler')
  return {
    home,
    freeMb: async () => {
      const { bavail, bsize } = await statfs(home)
      return Math.floor((bavail * bsize) / MIB)
    },
    fill: async (wanted) => {
      await rm(filler, { force: true })
      if (wanted > 0) await run('fallocate', ['--length', String(wanted * MIB), filler])
    },
    remove: async () => {
      await run('umount', [home])
      await rm(root, { recursive: true, force: true })
    },
  }
}
