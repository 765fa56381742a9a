import { createHash } from 'node:crypto'
import { closeSync, constants, existsSync, fdatasyncSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { killScope } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { z } from 'zod'
import { storedKill, type StoredKill } from '../store/kills.ts'

/** Of each of two copies: room for hundreds of kills. */
const COPY_BYTES = 128 * 1024
/** The directory belongs to a process that has given up root, and this may run before it did: no link is followed. */
const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW
const COPY = /^(\d{1,15}) ([0-9a-f]{64}) (.*)$/u

/**
 * Killswitches that the store has not taken yet, in a file, so that they outlive the server.
 *
 * Its room is taken when it is opened, and it is written in place: a full disk, which is what mostly keeps the store from
 * taking one, does not stop it. Two copies are written in turn, each with its checksum, so a write that is cut off leaves
 * the one before.
 */
export interface KillSpill {
  /** What an earlier life left behind. */
  readonly found: readonly StoredKill[]
  /** From now on these are kept, and no others. Synced when it returns. Never throws: without a disk they are in memory only. */
  keep(kills: readonly StoredKill[]): void
  close(): void
}

export function openKillSpill(dir: string, log: Log): KillSpill {
  const path = join(dir, 'unstored-kills')
  const isNew = !existsSync(path)
  const fd = openSync(path, FLAGS, 0o600)
  if (!isNew && fstatSync(fd).size < 2 * COPY_BYTES)
    log.error('unstored-kills lost its end: kills that the store had not taken may be missing; see "airlock kill --ls"')
  takeRoom(fd, log)
  return new KillSpillFile(fd, log)
}

function takeRoom(fd: number, log: Log): void {
  const { size } = fstatSync(fd)
  if (size >= 2 * COPY_BYTES) return
  try {
    writeSync(fd, Buffer.alloc(2 * COPY_BYTES - size), 0, 2 * COPY_BYTES - size, size)
    fdatasyncSync(fd)
  } catch (error) {
    log.warn('there is no room yet for kills that the store cannot take', { error })
  }
}

class KillSpillFile implements KillSpill {
  readonly found: readonly StoredKill[]
  readonly #fd: number
  readonly #log: Log
  #writes: number
  /** The ids of what the file holds. */
  #kept: string

  constructor(fd: number, log: Log) {
    this.#fd = fd
    this.#log = log
    const copies = [readCopy(fd, 0), readCopy(fd, 1)]
    if (copies.every((copy) => copy === 'broken')) log.error('kills that were never stored cannot be read any more')
    const [latest] = copies.filter((copy) => typeof copy === 'object').toSorted((a, b) => b.writes - a.writes)
    this.found = latest?.kills ?? []
    this.#writes = latest?.writes ?? 0
    this.#kept = idsOf(this.found)
  }

  keep(kills: readonly StoredKill[]): void {
    const fitting = fit(kills)
    if (idsOf(fitting) === this.#kept) return
    if (fitting.length < kills.length) this.#log.error('there are too many kills that the store cannot take')
    const writes = this.#writes + 1
    try {
      const bytes = Buffer.from(textOf(writes, fitting))
      if (writeSync(this.#fd, bytes, 0, bytes.length, (writes % 2) * COPY_BYTES) !== bytes.length)
        return this.#log.error('a kill is in memory only')
      fdatasyncSync(this.#fd)
      this.#writes = writes
      this.#kept = idsOf(fitting)
    } catch (error) {
      this.#log.error('a kill is in memory only', { error })
    }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

interface Copy {
  readonly writes: number
  readonly kills: readonly StoredKill[]
}

function readCopy(fd: number, index: 0 | 1): Copy | 'empty' | 'broken' {
  const bytes = Buffer.alloc(COPY_BYTES)
  const length = readSync(fd, bytes, 0, COPY_BYTES, index * COPY_BYTES)
  if (length === 0 || bytes[0] === 0) return 'empty'
  const [, writes = '', sum, json = ''] = COPY.exec(bytes.toString('utf8', 0, bytes.indexOf('\n'))) ?? []
  if (sum !== checksum(writes, json)) return 'broken'
  return { writes: Number(writes), kills: z.array(storedKill).parse(JSON.parse(json)) }
}

function textOf(writes: number, kills: readonly StoredKill[]): string {
  const json = JSON.stringify(kills.map((kill) => storedKill.parse(kill)))
  return `${writes} ${checksum(String(writes), json)} ${json}\n`
}

function checksum(writes: string, json: string): string {
  return createHash('sha256').update(`${writes} ${json}`).digest('hex')
}

/** As many as there is room for, those of the widest scope first. */
function fit(kills: readonly StoredKill[]): readonly StoredKill[] {
  const width = ({ scope }: StoredKill) => killScope.options.indexOf(scope)
  const fitting = kills.toSorted((a, b) => width(b) - width(a))
  while (Buffer.byteLength(textOf(Number.MAX_SAFE_INTEGER, fitting)) > COPY_BYTES) fitting.pop()
  return fitting
}

function idsOf(kills: readonly StoredKill[]): string {
  return kills
    .map(({ id }) => id)
    .toSorted()
    .join(' ')
}
