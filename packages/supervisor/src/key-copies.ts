import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { AirlockError } from '@airlock/contract'
import type { Settings } from './config.ts'
import { KEYS_UID } from './directories.ts'

const LOOK_MS = 1_000
const MOST_BYTES = 4096

/** The operator's file with the key of an upstream, and the copy that `keys` reads. */
interface Pair {
  readonly upstream: string
  readonly file: string
  readonly copy: string
}

/** Path of the copy of an upstream's key. Only root writes in that directory, and only `keys` reads there. */
export function keyCopyPath(runtimeDir: string, upstream: string): string {
  return join(runtimeDir, 'keys', `${upstream}.key`)
}

/**
 * Gives `keys`, which is not root, the keys of upstreams: a copy of each file, renewed when the file changes. The kernel
 * copies; no key is ever in the memory of this process.
 */
export class KeyCopies {
  readonly #dir: string
  readonly #pairs: readonly Pair[]
  readonly #warn: (text: string) => void
  /** Latest seen version of each file, by upstream. */
  readonly #seen = new Map<string, string>()
  #timer: NodeJS.Timeout | undefined

  constructor({ config, runtimeDir }: Pick<Settings, 'config' | 'runtimeDir'>, warn: (text: string) => void) {
    this.#dir = join(runtimeDir, 'keys')
    this.#pairs = Object.entries(config.llm.upstream).flatMap(([upstream, { key_file: file }]) =>
      file === undefined ? [] : [{ upstream, file, copy: keyCopyPath(runtimeDir, upstream) }],
    )
    this.#warn = warn
  }

  /** Throws `config_invalid` when a file cannot be used: a server does not start with half of its keys. */
  start(): void {
    this.#removeAll()
    try {
      for (const pair of this.#pairs) {
        this.#seen.set(pair.upstream, versionOf(pair.file))
        copyKey(pair)
      }
    } catch (error) {
      this.#removeAll()
      throw error
    }
    if (this.#pairs.length > 0) this.#timer = setInterval(() => this.look(), LOOK_MS).unref()
  }

  /** Renews the copies of what changed. A file that is gone takes its key back; one that cannot be used changes nothing. */
  look(): void {
    for (const pair of this.#pairs) {
      const version = versionOf(pair.file)
      if (version === this.#seen.get(pair.upstream)) continue
      this.#seen.set(pair.upstream, version)
      this.#renew(pair, version)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#removeAll()
  }

  #renew(pair: Pair, version: string): void {
    if (version === ABSENT) {
      rmSync(pair.copy, { force: true })
      this.#warn(`upstream ${pair.upstream} has no key any more: ${pair.file} is gone`)
      return
    }
    try {
      copyKey(pair)
    } catch (error) {
      const why = error instanceof AirlockError ? `${error.message} ${error.hint}` : String(error)
      this.#warn(`upstream ${pair.upstream} keeps its earlier key: ${why}`)
    }
  }

  /** Removes copies of an earlier server too. */
  #removeAll(): void {
    for (const name of readdirSync(this.#dir)) rmSync(join(this.#dir, name), { force: true })
  }
}

const ABSENT = 'absent'

/** Never throws: opening the file tells why it cannot be looked at. */
function versionOf(file: string): string {
  try {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false })
    return found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}` : ABSENT
  } catch (error) {
    return codeOf(error)
  }
}

/** Checks and copies by one descriptor: the file that was checked is the file that is copied. */
function copyKey({ upstream, file, copy }: Pair): void {
  const fd = openKey(upstream, file)
  const fresh = `${copy}.new`
  try {
    throwOnOpen(fd, { upstream, file })
    rmSync(fresh, { force: true })
    copyFileSync(`/proc/self/fd/${fd}`, fresh, constants.COPYFILE_EXCL)
    chmodSync(fresh, 0o400)
    chownSync(fresh, KEYS_UID, KEYS_UID)
    renameSync(fresh, copy)
  } finally {
    closeSync(fd)
  }
}

function openKey(upstream: string, file: string): number {
  try {
    // A pipe at that path would hold the server up.
    return openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    throw unusable(
      upstream,
      `${file} cannot be opened (${codeOf(cause)})`,
      'Write the key there, for root to read alone.',
    )
  }
}

/** Fails closed: anybody else who may read or replace the file has the key. */
function throwOnOpen(fd: number, { upstream, file }: Omit<Pair, 'copy'>): void {
  const found = fstatSync(fd)
  if (!found.isFile()) throw unusable(upstream, `${file} is not a file`, 'Name the file that holds the key.')
  if (found.uid !== 0 && found.uid !== KEYS_UID)
    throw unusable(upstream, `${file} belongs to uid ${found.uid}`, `Run "chown root ${file}".`)
  if ((found.mode & 0o077) !== 0) throw unusable(upstream, `${file} is open to other users`, `Run "chmod 600 ${file}".`)
  if (found.size === 0 || found.size > MOST_BYTES)
    throw unusable(upstream, `${file} does not hold one key`, 'Write the key to it on one line.')
}

function unusable(upstream: string, what: string, hint: string): AirlockError {
  return new AirlockError('config_invalid', `llm.upstream.${upstream}.key_file: ${what}.`, { hint })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
