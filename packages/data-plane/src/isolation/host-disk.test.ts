import { once } from 'node:events'
import { mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeSmallDisk } from '../../../../test/support/small-disk.ts'
import { HostDisk } from './host-disk.ts'

const GIB = 1024 ** 3
const FULL = expect.objectContaining({ code: 'host_disk_full' })

describe('the disk of the host', () => {
  let dir = ''
  let free = 0
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'airlock-host-disk-'))
    const { bavail, bsize } = await statfs(dir)
    free = bavail * bsize
  })
  afterAll(async () => rm(dir, { recursive: true, force: true }))

  /** Others use the disk too, meanwhile: nothing here is nearer to an edge than a tenth of it. */
  const withReserve = (share: number) => new HostDisk({ dir, reserveBytes: Math.floor(free * share) })

  it('gives what is left beyond its reserve, and half of that to what commands say', () => {
    expect(() => withReserve(0.5).assertRoom(free * 0.4)).not.toThrow()
    expect(() => withReserve(0.5).assertRoom(free * 0.6)).toThrow(FULL)
    expect(() => withReserve(1.5).assertRoom()).toThrow(FULL)
    expect(() => withReserve(1.5).assertRoomForOutput()).not.toThrow()
    expect(() => withReserve(3).assertRoomForOutput()).toThrow(FULL)
  })

  it('keeps a share of the file system unless it is told how much', () => {
    const { reserveBytes } = new HostDisk({ dir, reserveBytes: null })
    expect(reserveBytes).toBeGreaterThanOrEqual(GIB)
    expect(reserveBytes).toBeLessThanOrEqual(10 * GIB)
  })

  it('is read with what disks take, before and after: one that is made meanwhile is never free as well', async () => {
    const { freeBytes, takenBytes, reserveBytes } = await withReserve(0).read(async () => 4096)
    expect({ takenBytes, reserveBytes }).toEqual({ takenBytes: 4096, reserveBytes: 0 })
    expect(freeBytes).toBeGreaterThan(0)
  })

  it.skipIf(process.getuid?.() !== 0)('aborts what fills it, and refuses to begin it when it is full', async () => {
    const disk = await makeSmallDisk(16)
    try {
      const hostDisk = new HostDisk({ dir: disk.home, reserveBytes: 4 * 1024 * 1024 })
      const work = hostDisk.guard(async (signal) => {
        await disk.fill((await disk.freeMb()) - 2)
        // Filling may take longer than the guard takes to see it.
        if (!signal.aborted) await once(signal, 'abort')
        throw new TypeError('broken off')
      })
      await expect(work).rejects.toMatchObject({ code: 'host_disk_full' })
      await expect(hostDisk.guard(async () => 'done')).rejects.toMatchObject({ code: 'host_disk_full' })
    } finally {
      await disk.remove()
    }
  })
})
