import { AirlockError } from '@airlock/contract'
import {
  closeSync,
  constants,
  fchmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { partsOf, refuse, throwOnLinkOut } from './member-name.ts'
import type { TarEntry } from './tar-reader.ts'

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
const WHITEOUT = '.wh.'
const OPAQUE = '.wh..wh..opq'

export interface TreeLimits {
  readonly bytes: number
  readonly entries: number
}

/**
 * Writes entries below one directory, and nowhere else. Nobody else writes there, so what was looked at stays as it was:
 * every part of a path above an entry is a directory and no link, and what is written is always a new file.
 */
export class Tree {
  readonly #root: string
  #bytesLeft: number
  #entriesLeft: number
  /** Paths of the layer that is being applied. */
  #layer = new Set<string>()
  /** Directories above them. */
  #above = new Set<string>()
  #directories = new Set<string>()

  constructor(root: string, limits: TreeLimits) {
    this.#root = root
    this.#bytesLeft = limits.bytes
    this.#entriesLeft = limits.entries
  }

  /** One archive over what is there already. In a layer of an image, some names mean that something is gone. */
  async apply(entries: AsyncIterable<TarEntry>, as: 'plain' | 'layer'): Promise<void> {
    this.#layer = new Set()
    this.#above = new Set()
    for await (const entry of entries) {
      if (--this.#entriesLeft < 0) throw new AirlockError('template_invalid', 'The image has too many entries.')
      const parts = partsOf(entry.name)
      const [name, parents] = [parts.at(-1), parts.slice(0, -1)]
      if (name === undefined) {
        if (entry.type !== 'directory') throw refuse(entry.name, 'would replace the root')
        continue
      }
      this.#enter(entry.name, parents)
      if (as === 'layer' && name.startsWith(WHITEOUT)) this.#whiteOut(entry.name, parents, name)
      else await this.#write(entry, parts)
    }
  }

  /** Makes the directories above an entry. Throws when one of them is something else. */
  #enter(name: string, parents: readonly string[]): void {
    for (let depth = 1; depth <= parents.length; depth++) {
      const path = parents.slice(0, depth).join('/')
      if (this.#directories.has(path)) continue
      const found = lstatSync(this.#at(path), { throwIfNoEntry: false })
      if (found?.isSymbolicLink()) throw refuse(name, `goes through the link ${JSON.stringify(path.slice(0, 200))}`)
      if (found && !found.isDirectory()) throw refuse(name, 'is below something that is not a directory')
      if (!found) mkdirSync(this.#at(path), 0o755)
      this.#directories.add(path)
    }
  }

  async #write(entry: TarEntry, parts: readonly string[]): Promise<void> {
    const path = parts.join('/')
    const found = lstatSync(this.#at(path), { throwIfNoEntry: false })
    if (entry.type === 'directory' && found?.isDirectory()) return this.#note(parts)
    if (this.#layer.has(path)) throw refuse(entry.name, 'appears twice')
    // Implied by an entry of this layer, though never named by it.
    if (found?.isDirectory() && this.#hasOfLayer(path)) throw refuse(entry.name, 'would replace a directory')
    if (entry.type === 'symlink') throwOnLinkOut(entry.name, parts.slice(0, -1), entry.target)
    const target = entry.type === 'hardlink' ? this.#linked(entry, path) : entry.target
    if (found) this.#remove(path)
    this.#note(parts)
    await this.#make(entry, this.#at(path), target)
  }

  /** Preconditions: nothing is there. */
  async #make(entry: TarEntry, path: string, target: string): Promise<void> {
    if (entry.type === 'file') await this.#writeFile(entry, path)
    else if (entry.type === 'directory') mkdirSync(path, 0o755)
    else if (entry.type === 'hardlink') linkSync(target, path)
    else symlinkSync(target, path)
  }

  async #writeFile(entry: TarEntry & { readonly type: 'file' }, path: string): Promise<void> {
    this.#bytesLeft -= entry.size
    if (this.#bytesLeft < 0) throw new AirlockError('template_invalid', 'The image is too large.')
    const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      for await (const chunk of entry.body) writeAll(file, chunk)
      fchmodSync(file, readable(entry.mode))
    } finally {
      closeSync(file)
    }
  }

  /** A hard link is to a file of the image that is there, reached without a link. */
  #linked(entry: TarEntry, path: string): string {
    const parts = partsOf(entry.target)
    for (let depth = 1; depth < parts.length; depth++)
      if (!lstatSync(this.#at(parts.slice(0, depth).join('/')), { throwIfNoEntry: false })?.isDirectory())
        throw refuse(entry.name, 'is a link that leads nowhere')
    const target = parts.join('/')
    const found = lstatSync(this.#at(target), { throwIfNoEntry: false })
    if (target === path || found?.isFile() !== true) throw refuse(entry.name, 'is a link to something that is no file')
    return this.#at(target)
  }

  #whiteOut(entry: string, parents: readonly string[], name: string): void {
    const directory = parents.join('/')
    if (name === OPAQUE) {
      const below = (child: string) => [...parents, child].join('/')
      for (const child of readdirSync(this.#at(directory))) this.#removeLower(below(child))
      return
    }
    const hidden = partsOf(name.slice(WHITEOUT.length))
    if (hidden.length !== 1) throw refuse(entry, 'hides nothing that can be named')
    this.#removeLower([...parents, ...hidden].join('/'))
  }

  /** What lower layers have at a path; what this layer wrote stays. */
  #removeLower(path: string): void {
    if (this.#layer.has(path) && !this.#isDirectory(path)) return
    if (!this.#hasOfLayer(path)) return this.#remove(path)
    for (const child of readdirSync(this.#at(path))) this.#removeLower(`${path}/${child}`)
  }

  #isDirectory(path: string): boolean {
    return lstatSync(this.#at(path), { throwIfNoEntry: false })?.isDirectory() === true
  }

  #hasOfLayer(path: string): boolean {
    return this.#layer.has(path) || this.#above.has(path)
  }

  #note(parts: readonly string[]): void {
    this.#layer.add(parts.join('/'))
    for (let depth = parts.length - 1; depth > 0; depth--) {
      const path = parts.slice(0, depth).join('/')
      if (this.#above.has(path)) return
      this.#above.add(path)
    }
  }

  #remove(path: string): void {
    rmSync(this.#at(path), { recursive: true, force: true })
    this.#directories = new Set()
  }

  #at(path: string): string {
    return join(this.#root, path)
  }
}

/** Nobody writes to an image, and nobody gains rights by it; who is not its owner sees what its owner saw. */
function readable(mode: number): number {
  return ((mode & 0o444) === 0 ? 0o400 : 0o444) | ((mode & 0o111) === 0 ? 0 : 0o111)
}

function writeAll(file: number, chunk: Buffer): void {
  for (let at = 0; at < chunk.length;) at += writeSync(file, chunk, at)
}
