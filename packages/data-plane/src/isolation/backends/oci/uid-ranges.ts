import { AirlockError } from '@airlock/contract'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { isSystemError } from './system-error.ts'

export interface UidRange {
  readonly first: number
  readonly count: number
}

const COUNT = 65_536
/** Far above what Debian gives to users; the first range belongs to our own processes. */
const BASE = 0x70_00_00_00
const SLOTS = 4095

/**
 * Ranges of host uids, one for each living sandbox of the whole machine, whichever server started it. A claim is a
 * symbolic link named by the slot that points to the sandbox's directory: it is made with its content in one step, and
 * a link to nothing is a claim that nobody holds any more.
 */
export class UidRanges {
  readonly #dir: string
  readonly #reserved: readonly UidRange[]

  constructor(dir = '/run/airlock-uid-ranges', reserved: readonly UidRange[] = readSubordinateRanges()) {
    this.#dir = dir
    this.#reserved = reserved
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  }

  /** Preconditions: the directory exists, and exists until `release`. */
  claim(directory: string): UidRange {
    const taken = new Set(readdirSync(this.#dir))
    const free = Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => !this.#isReserved(slot))
    for (const slot of free) if (!taken.has(String(slot)) && this.#take(slot, directory)) return rangeOf(slot)
    for (const slot of free) if (this.#takeOver(slot, directory)) return rangeOf(slot)
    throw new AirlockError('capacity_exhausted', 'Every range of host uids is in use.')
  }

  /** Idempotent. Preconditions: no process of the range lives, and the directory still exists. */
  release(directory: string): void {
    for (const name of this.#claimsOf(directory)) unlinkSync(join(this.#dir, name))
  }

  holds(directory: string): boolean {
    return this.#claimsOf(directory).length > 0
  }

  #claimsOf(directory: string): readonly string[] {
    return readdirSync(this.#dir).filter((name) => this.#holder(name) === directory)
  }

  #take(slot: number, directory: string): boolean {
    try {
      symlinkSync(directory, join(this.#dir, String(slot)))
      return true
    } catch (error) {
      if (isSystemError(error, 'EEXIST')) return false
      throw error
    }
  }

  /**
   * Replaces a claim whose directory is gone. Of several that try, only who makes the link named after this very claim
   * may; a claim whose directory exists is never touched, so nobody else changes it meanwhile.
   */
  #takeOver(slot: number, directory: string): boolean {
    const name = String(slot)
    const path = join(this.#dir, name)
    const seen = this.#identity(name)
    if (seen === undefined || !this.#isStale(name)) return false
    const right = join(this.#dir, `${name}.${seen}`)
    try {
      symlinkSync(directory, right)
    } catch (error) {
      if (isSystemError(error, 'EEXIST')) return false
      throw error
    }
    if (this.#identity(name) === seen) {
      renameSync(right, path)
      return true
    }
    unlinkSync(right)
    return false
  }

  #isStale(name: string): boolean {
    const holder = this.#holder(name)
    return holder !== undefined && !existsSync(holder)
  }

  #holder(name: string): string | undefined {
    try {
      return readlinkSync(join(this.#dir, name))
    } catch (error) {
      // Released meanwhile, or not a claim.
      if (isSystemError(error, 'ENOENT', 'EINVAL')) return undefined
      throw error
    }
  }

  #identity(name: string): string | undefined {
    const stat = lstatSync(join(this.#dir, name), { bigint: true, throwIfNoEntry: false })
    return stat && `${stat.ino}-${stat.ctimeNs}`
  }

  #isReserved(slot: number): boolean {
    const { first, count } = rangeOf(slot)
    return this.#reserved.some((range) => range.first < first + count && first < range.first + range.count)
  }
}

function rangeOf(slot: number): UidRange {
  return { first: BASE + COUNT * (slot + 1), count: COUNT }
}

/** What the administrator gave to users for namespaces of their own: `name:first:count`. */
function readSubordinateRanges(): readonly UidRange[] {
  return ['/etc/subuid', '/etc/subgid']
    .filter((path) => existsSync(path))
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    .map((line) => line.split(':'))
    .filter((fields) => fields.length === 3)
    .map(([, first, count]) => ({ first: Number(first), count: Number(count) }))
}
