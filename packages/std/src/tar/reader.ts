import { BLOCK, paddingOf, type TarEntry } from './entry.ts'
import { type Extended, MAX_EXTENDED_BYTES, sizeOf, takeExtended } from './extended.ts'
import { parseHeader, type TarHeader } from './header.ts'
import { KnownPaths } from './known-paths.ts'
import { pathOf, targetOf } from './names.ts'
import { damaged, refuseEntry, TarError } from './tar-error.ts'

export type TarEvent =
  | { readonly kind: 'entry'; readonly entry: TarEntry }
  /** Content of the entry that came last. */
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  /** The entry that came last is complete. */
  | { readonly kind: 'complete'; readonly entry: TarEntry }
  | { readonly kind: 'comment'; readonly text: string }

export interface TarBounds {
  readonly entries: number
  /** Of all paths and link targets together. */
  readonly nameBytes: number
}

export const TAR_BOUNDS: TarBounds = { entries: 100_000, nameBytes: 16 * 1024 * 1024 }

const END_BLOCKS = 2
const MAX_TIME_MS = 253_402_300_799_000
const SET_ID = 0o6000

/** The kinds that no archive may have here. */
const REFUSED: Readonly<Record<string, string>> = {
  '1': 'is a hard link',
  '3': 'is a device',
  '4': 'is a device',
  '6': 'is a FIFO',
  S: 'is a sparse file',
}

type State =
  | { readonly at: 'header' }
  | { readonly at: 'extended'; readonly header: TarHeader }
  | { readonly at: 'content'; readonly entry: TarEntry; left: number }
  | { readonly at: 'padding'; left: number }
  | { readonly at: 'ended'; blocks: number }

/**
 * Reads a tar however it is cut into chunks: ustar, with the extended headers of POSIX and the long names of GNU. Each
 * entry is judged before any of its content is handed out. Throws `TarError` for every archive that two readers could
 * take differently, or that could write anywhere else than below one directory. Holds one block, or one extended header.
 */
export class TarReader {
  readonly #bounds: TarBounds
  readonly #known = new KnownPaths()
  #state: State = { at: 'header' }
  #held: Buffer = Buffer.alloc(0)
  #extended: Extended = {}
  #extendedHeaders = 0
  #entries = 0
  #nameBytes = 0

  constructor(bounds = TAR_BOUNDS) {
    this.#bounds = bounds
  }

  /** Answers what is certain by now. After an error the reader is of no use. */
  *push(chunk: Buffer): Generator<TarEvent> {
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = Buffer.alloc(0)
    while (rest.length > 0) {
      const wanted = this.#wanted()
      if (wanted > rest.length && !this.#isStreaming()) break
      const part = rest.subarray(0, Math.min(wanted, rest.length))
      rest = rest.subarray(part.length)
      yield* this.#take(part)
    }
    this.#held = rest
  }

  /** Throws unless the archive ended as archives end. */
  finish(): void {
    const isEnded = this.#state.at === 'ended' && this.#state.blocks >= END_BLOCKS && this.#held.length === 0
    if (!isEnded) throw damaged('it breaks off')
  }

  #isStreaming(): boolean {
    return this.#state.at === 'content' || this.#state.at === 'padding'
  }

  #wanted(): number {
    if (this.#state.at === 'content' || this.#state.at === 'padding') return this.#state.left
    if (this.#state.at !== 'extended') return BLOCK
    const { size } = this.#state.header
    return size + paddingOf(size)
  }

  *#take(part: Buffer): Generator<TarEvent> {
    const state = this.#state
    if (state.at === 'header') yield* this.#header(part)
    else if (state.at === 'extended') yield* this.#takeExtended(state.header, part)
    else if (state.at === 'content') yield* this.#content(state, part)
    else if (state.at === 'padding') {
      state.left -= part.length
      if (state.left === 0) this.#state = { at: 'header' }
    } else this.#end(state, part)
  }

  #end(state: Extract<State, { at: 'ended' }>, block: Buffer): void {
    if (!block.every((byte) => byte === 0)) throw damaged('something follows its end')
    state.blocks++
  }

  *#header(block: Buffer): Generator<TarEvent> {
    const header = parseHeader(block)
    if (!header) {
      if (this.#extendedHeaders > 0) throw damaged('an extended header has no entry')
      this.#state = { at: 'ended', blocks: 1 }
    } else if ('xgLK'.includes(header.type)) {
      if (header.size > MAX_EXTENDED_BYTES || header.size === 0) throw damaged('an extended header has a wrong size')
      // An entry has at most a long name, a long target and one header of POSIX.
      if (header.type !== 'g' && ++this.#extendedHeaders > 3) throw damaged('an entry has too many extended headers')
      if (header.type === 'g') this.#count(header.size)
      this.#state = { at: 'extended', header }
    } else yield* this.#entry(header)
  }

  *#takeExtended(header: TarHeader, part: Buffer): Generator<TarEvent> {
    const comment = takeExtended(header, part.subarray(0, header.size), this.#extended)
    this.#state = { at: 'header' }
    if (comment !== undefined) yield { kind: 'comment', text: comment }
  }

  *#entry(header: TarHeader): Generator<TarEvent> {
    const extended = this.#extended
    this.#extended = {}
    this.#extendedHeaders = 0
    this.#count((extended.name ?? header.name).length + (extended.link ?? header.link).length)
    const entry = entryOf(header, extended)
    if (entry === 'root') return
    this.#known.add(entry)
    yield { kind: 'entry', entry }
    if (entry.size > 0) this.#state = { at: 'content', entry, left: entry.size }
    else yield { kind: 'complete', entry }
  }

  #count(nameBytes: number): void {
    this.#nameBytes += nameBytes
    if (++this.#entries > this.#bounds.entries)
      throw new TarError(`The archive has more than ${this.#bounds.entries} entries.`)
    if (this.#nameBytes > this.#bounds.nameBytes) throw new TarError('The names in the archive are too long together.')
  }

  *#content(state: Extract<State, { at: 'content' }>, part: Buffer): Generator<TarEvent> {
    yield { kind: 'bytes', bytes: part }
    state.left -= part.length
    if (state.left > 0) return
    const padding = paddingOf(state.entry.size)
    this.#state = padding === 0 ? { at: 'header' } : { at: 'padding', left: padding }
    yield { kind: 'complete', entry: state.entry }
  }
}

/** Fails closed. The directory of the archive itself is no entry. */
function entryOf(header: TarHeader, extended: Extended): TarEntry | 'root' {
  const name = extended.name ?? header.name
  const path = pathOf(name)
  const kind = kindOf(header, name)
  const size = sizeOf(header, extended)
  throwOnFields(path ?? '.', { kind, size, mode: header.mode })
  if (path === undefined && kind !== 'directory') throw refuseEntry('.', 'is no directory')
  if (path === undefined) return 'root'
  const target = kind === 'symlink' ? targetOf(path, extended.link ?? header.link) : ''
  const modifiedMs = Math.min(Math.max(0, extended.modifiedMs ?? header.modifiedS * 1000), MAX_TIME_MS)
  return { path, kind, mode: header.mode & 0o777, size, modifiedMs, target }
}

function throwOnFields(shown: string, { kind, size, mode }: Pick<TarEntry, 'kind' | 'size' | 'mode'>): void {
  if (kind !== 'file' && size > 0) throw refuseEntry(shown, 'has a size but no content')
  if (kind === 'file' && (mode & SET_ID) !== 0) throw refuseEntry(shown, 'has a set-uid or set-gid bit')
}

function kindOf(header: TarHeader, name: Buffer): TarEntry['kind'] {
  if (header.type === '5') return 'directory'
  if (header.type === '2') return 'symlink'
  // Old archives mark a directory by its name alone; others take it for a file.
  if (header.type === '0' && name.at(-1) !== 0x2f) return 'file'
  const why = REFUSED[header.type] ?? (header.type === '0' ? 'is a file with the name of a directory' : undefined)
  throw refuseEntry(name.toString(), why ?? `is of the unknown kind ${JSON.stringify(header.type)}`)
}
