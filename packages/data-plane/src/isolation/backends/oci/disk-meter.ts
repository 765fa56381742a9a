import { closeSync, constants, fstatSync, openSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDiskOf } from './destroy.ts'
import { CounterFile, type CounterReader } from './groups/counter-file.ts'
import { mountsOf, type Mount } from './mounts.ts'
import type { SandboxPaths } from './paths.ts'
import { isSystemError } from './system-error.ts'

export interface DiskReading {
  readonly diskBytes: number | null
  readonly inodes: number | null
  readonly readBytes: number | null
  readonly writtenBytes: number | null
  /** How full the fullest place is, in percent. */
  readonly diskPercent: number | null
  readonly inodesPercent: number | null
}

/** A descriptor of a place, for nothing but to name it. Node has no name for the flag. */
const O_PATH = 0o10_000_000
const SECTOR_BYTES = 512
/** The kernel refuses a large write whole, so up to one page of the largest size stays free; of a small disk a share counts. */
const NO_ROOM_BYTES = 2 * 1024 * 1024
const NO_ROOM_SHARE = 1 / 32
const ANYBODY_WRITES = 0o002

/**
 * How full the writable places of a sandbox are, and what its disk read and wrote. The places are held by descriptors of the
 * mounts themselves, found in the kernel's list and not by what a path leads to: nothing inside can put another in their
 * place. While it is open the disk cannot be unmounted.
 */
export class DiskMeter {
  /** Paths of our own descriptors, which Node asks about by path. */
  readonly #places: readonly { readonly fd: number; readonly path: string }[]
  readonly #reader: CounterReader
  /** The statistics of its device, and what they said before it was the sandbox's. */
  readonly #device: CounterFile | undefined
  readonly #before: Traffic

  /** `pids` are of the sandbox, the first process first. */
  constructor(pids: Iterable<number>, paths: SandboxPaths, reader: CounterReader) {
    const { disk, places } = findPlaces(pids, paths)
    this.#reader = reader
    reader.held += places.length
    this.#places = places.map((fd) => ({ fd, path: `/proc/self/fd/${fd}` }))
    this.#device = disk === undefined ? undefined : new CounterFile(`/sys/dev/block/${disk}/stat`, reader)
    try {
      const now = parseTraffic(this.#device?.text())
      this.#before = this.#device ? trafficBefore(paths, now) : now
    } catch (error) {
      this.close()
      throw error
    }
  }

  read(): DiskReading {
    return { ...this.#fill(), ...this.#readTraffic() }
  }

  /** Whether one of the places takes no more, or no more files. */
  isFull(): boolean {
    return this.#places.some(({ path }) => {
      const { bsize, blocks, bavail, files, ffree } = statfsSync(path)
      return bavail * bsize < Math.min(NO_ROOM_BYTES, blocks * bsize * NO_ROOM_SHARE) || (files > 0 && ffree === 0)
    })
  }

  close(): void {
    for (const { fd } of this.#places) closeSync(fd)
    this.#reader.held -= this.#places.length
    this.#device?.close()
  }

  #fill(): Pick<DiskReading, 'diskBytes' | 'inodes' | 'diskPercent' | 'inodesPercent'> {
    if (this.#places.length === 0) return { diskBytes: null, inodes: null, diskPercent: null, inodesPercent: null }
    const sum = { diskBytes: 0, inodes: 0, diskPercent: 0, inodesPercent: 0 }
    for (const { path } of this.#places) {
      const { bsize, blocks, bfree, bavail, files, ffree } = statfsSync(path)
      const used = blocks - bfree
      sum.diskBytes += used * bsize
      sum.inodes += files - ffree
      // A file system keeps some blocks for itself: it is full when there are none left for others.
      sum.diskPercent = Math.max(sum.diskPercent, share(used, used + bavail))
      sum.inodesPercent = Math.max(sum.inodesPercent, share(files - ffree, files))
    }
    return sum
  }

  #readTraffic(): Pick<DiskReading, 'readBytes' | 'writtenBytes'> {
    const text = this.#device?.text()
    if (text === undefined) return { readBytes: null, writtenBytes: null }
    const now = parseTraffic(text)
    const before = this.#before
    return {
      readBytes: Math.max(0, now.read - before.read) * SECTOR_BYTES,
      writtenBytes: Math.max(0, now.written - before.written) * SECTOR_BYTES,
    }
  }
}

/** In percent, with one decimal. */
export function share(used: number, of: number): number {
  return of === 0 ? 0 : Math.round((used / of) * 1000) / 10
}

/** In sectors. */
interface Traffic {
  readonly read: number
  readonly written: number
}

/** Fields 3 and 7 of the statistics of a block device. */
export function parseTraffic(text: string | undefined): Traffic {
  const fields = (text ?? '').trim().split(/\s+/u)
  return { read: Number(fields[2] ?? 0), written: Number(fields[6] ?? 0) }
}

/**
 * Loop devices are used again, and count on: what was there when it was first read is kept, also over a restart of ours. Where
 * that cannot be written, it counts from now on, and after a restart from then.
 */
function trafficBefore(paths: SandboxPaths, now: Traffic): Traffic {
  const path = join(paths.dir, 'disk-traffic')
  try {
    const [, read, written] = /^(\d+) (\d+)$/u.exec(readFileSync(path, 'utf8')) ?? []
    if (read !== undefined) return { read: Number(read), written: Number(written) }
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error
  }
  try {
    writeFileSync(path, `${now.read} ${now.written}`)
  } catch {
    // A host without room has worse to tell.
  }
  return now
}

/** The disk, and file systems in memory that anybody inside may write to: those of gVisor are in its own memory. */
function findPlaces(
  pids: Iterable<number>,
  paths: SandboxPaths,
): { readonly disk: string | undefined; readonly places: readonly number[] } {
  const ours = new Set(mountsOf('self').map(({ device }) => device))
  for (const pid of pids) {
    const mounts = mountsOf(pid).filter(({ device, flags }) => flags.has('rw') && !ours.has(device))
    const disk = mounts.find(({ device, type }) => type === 'ext4' && isDiskOf(device, paths.disk))
    if (!disk) continue
    const memory = mounts.filter(({ type }) => type === 'tmpfs')
    return { disk: disk.device, places: holdAll(pid, disk, memory) }
  }
  return { disk: undefined, places: [] }
}

/** All of them or, when one fails, none. */
function holdAll(pid: number, disk: Mount, memory: readonly Mount[]): readonly number[] {
  const held: number[] = []
  try {
    for (const mount of [disk, ...memory]) {
      const fd = keepIf(hold(pid, mount), (one) => mount === disk || isForAnybody(one))
      if (fd !== undefined) held.push(fd)
    }
    return held
  } catch (error) {
    for (const fd of held) closeSync(fd)
    throw error
  }
}

/** A descriptor of this mount, or nothing when the path leads to another by now. */
function hold(pid: number, { device, mountPoint }: Mount): number | undefined {
  const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW
  try {
    return keepIf(openSync(`/proc/${pid}/root${mountPoint}`, flags), (fd) => deviceOf(fd) === device)
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ESRCH', 'ENOTDIR', 'ELOOP', 'EACCES')) return undefined
    throw error
  }
}

function keepIf(fd: number | undefined, isRight: (fd: number) => boolean): number | undefined {
  if (fd === undefined || isRight(fd)) return fd
  closeSync(fd)
  return undefined
}

function isForAnybody(fd: number): boolean {
  return (fstatSync(fd).mode & ANYBODY_WRITES) !== 0
}

/** As the kernel packs a device number for programs. */
function deviceOf(fd: number): string {
  const { dev } = fstatSync(fd)
  const major = (dev >>> 8) & 0xfff
  const minor = (dev & 0xff) | ((dev >>> 12) & 0xfff00)
  return `${major}:${minor}`
}
