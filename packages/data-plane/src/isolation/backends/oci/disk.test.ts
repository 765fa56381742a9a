import { mkdtemp, open, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLog } from '@airlock/std'
import { HostDisk } from '../../host-disk.ts'
import { Allocation } from './allocate.ts'
import { Disks } from './disk.ts'
import { requireTool, runTool } from './run-tool.ts'

const BYTES = 32 * 1024 * 1024
const SIZE = { diskBytes: BYTES, inodes: 2048 }

const TOOLS = {
  mkfs: requireTool('mkfs.ext4', 'e2fsprogs'),
  extents: fileURLToPath(new URL('./extents.py', import.meta.url)),
}

describe('disks', () => {
  let dir = ''
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'airlock-disk-'))
  })
  afterAll(async () => rm(dir, { recursive: true, force: true }))

  it('are equal byte by byte and whole file systems, formatted or copied', async () => {
    const disks = new Disks(TOOLS, dir)
    const paths = ['formatted', 'copied', 'copied-again'].map((name) => join(dir, name))
    for (const path of paths) await disks.make(path, SIZE)
    const [formatted = '', ...copies] = paths
    for (const path of copies) expect(await differsAt(formatted, path)).toBeUndefined()
    for (const path of paths) {
      const { exitCode, stdout } = await runTool(requireTool('e2fsck', 'e2fsprogs'), ['-f', '-n', path])
      expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
    }
    // Sparse: what is not used takes no room.
    expect(await takenBytes(join(dir, 'copied'))).toBeLessThan(BYTES / 10)
  })

  it('have their blocks set aside, where they are not sparse, and stay the same byte by byte', async () => {
    const disks = new Disks(TOOLS, dir)
    const [whole, sparse] = [join(dir, 'whole'), join(dir, 'sparse')]
    const hostDisk = new HostDisk({ dir, reserveBytes: 0 })
    const log = createLog({ process: 'test', level: 'silent', write: () => {} })
    for (const path of [whole, sparse]) await disks.make(path, SIZE)
    await new Allocation({ hostDisk, log, mode: 'whole' }).allocate(whole, BYTES)
    await new Allocation({ hostDisk, log, mode: 'sparse' }).allocate(sparse, BYTES)
    expect(await differsAt(whole, sparse)).toBeUndefined()
    expect(await takenBytes(whole)).toBeGreaterThanOrEqual(BYTES)
    expect(await takenBytes(sparse)).toBeLessThan(BYTES / 10)
  })

  it('are not set aside from the reserve of the host', async () => {
    const disks = new Disks(TOOLS, dir)
    const path = join(dir, 'refused')
    await disks.make(path, SIZE)
    const hostDisk = new HostDisk({ dir, reserveBytes: Number.MAX_SAFE_INTEGER })
    const log = createLog({ process: 'test', level: 'silent', write: () => {} })
    for (const mode of ['whole', 'sparse'] as const)
      await expect(new Allocation({ hostDisk, log, mode }).allocate(path, BYTES)).rejects.toMatchObject({
        code: 'host_disk_full',
      })
    expect(await takenBytes(path)).toBeLessThan(BYTES / 10)
  })

  it('never take the place of a file that is there', async () => {
    const disks = new Disks(TOOLS, dir)
    await disks.make(join(dir, 'first'), SIZE)
    await expect(disks.make(join(dir, 'first'), SIZE)).rejects.toMatchObject({ code: 'EEXIST' })
  })
})

async function takenBytes(path: string): Promise<number> {
  return (await stat(path)).blocks * 512
}

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
