import { mkdtemp, open, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Disks } from './disk.ts'
import { requireTool, runTool } from './run-tool.ts'

const BYTES = 32 * 1024 * 1024
const SIZE = { diskBytes: BYTES, inodes: 2048 }

describe('disks', () => {
  let dir = ''
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'airlock-disk-'))
  })
  afterAll(async () => rm(dir, { recursive: true, force: true }))

  it('are equal byte by byte and whole file systems, formatted or copied', async () => {
    const disks = new Disks(requireTool('mkfs.ext4', 'e2fsprogs'), dir)
    const paths = ['formatted', 'copied', 'copied-again'].map((name) => join(dir, name))
    for (const path of paths) await disks.make(path, SIZE)
    const [formatted = '', ...copies] = paths
    for (const path of copies) expect(await differsAt(formatted, path)).toBeUndefined()
    for (const path of paths) {
      const { exitCode, stdout } = await runTool(requireTool('e2fsck', 'e2fsprogs'), ['-f', '-n', path])
      expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
    }
    // Sparse: what is not used takes no room.
    expect((await stat(join(dir, 'copied'))).blocks * 512).toBeLessThan(BYTES / 10)
  })

  it('never take the place of a file that is there', async () => {
    const disks = new Disks(requireTool('mkfs.ext4', 'e2fsprogs'), dir)
    await disks.make(join(dir, 'first'), SIZE)
    await expect(disks.make(join(dir, 'first'), SIZE)).rejects.toMatchObject({ code: 'EEXIST' })
  })
})

/** The first block in which two files differ. */
async function differsAt(a: string, b: string): Promise<number | undefined> {
  const [one, other] = await Promise.all([open(a), open(b)])
  try {
    for (let at = 0; at < BYTES; at += 1024 * 1024) {
      const [x, y] = await Promise.all(
        [one, other].map((file) => file.read(Buffer.alloc(1024 * 1024), 0, 1024 * 1024, at)),
      )
      if (!x || !y || !x.buffer.equals(y.buffer)) return at
    }
    return undefined
  } finally {
    await Promise.all([one.close(), other.close()])
  }
}
