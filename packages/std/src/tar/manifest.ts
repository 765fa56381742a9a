import { createHash, type Hash } from 'node:crypto'
import type { TarEntry } from './entry.ts'
import type { TarEvent } from './reader.ts'

/** What an archive held. */
export interface TarSummary {
  readonly files: number
  readonly directories: number
  readonly links: number
  /** Of the content of files. */
  readonly bytes: number
  /** SHA-256 over one line per file, `<sha256>  <path>`, and per link, `-> <target>  <path>`, sorted by the bytes of the path. */
  readonly manifest: string
}

/** Counts what passes, and keeps a digest of each file. */
export class TarManifest {
  readonly #lines: { readonly path: Buffer; readonly line: string }[] = []
  readonly #counts = { file: 0, directory: 0, symlink: 0 }
  #bytes = 0
  #hash: Hash = createHash('sha256')

  /** Every event of a reader, in their order. */
  take(event: TarEvent): void {
    if (event.kind === 'entry') this.#hash = createHash('sha256')
    if (event.kind === 'bytes') {
      this.#bytes += event.bytes.length
      this.#hash.update(event.bytes)
    }
    if (event.kind === 'complete') this.#complete(event.entry)
  }

  get summary(): TarSummary {
    const hash = createHash('sha256')
    for (const { line } of this.#lines.toSorted((a, b) => Buffer.compare(a.path, b.path))) hash.update(line)
    const { file: files, directory: directories, symlink: links } = this.#counts
    return { files, directories, links, bytes: this.#bytes, manifest: hash.digest('hex') }
  }

  /** The counts so far. */
  get counts(): Omit<TarSummary, 'manifest'> {
    const { file: files, directory: directories, symlink: links } = this.#counts
    return { files, directories, links, bytes: this.#bytes }
  }

  #complete({ kind, path, target }: TarEntry): void {
    this.#counts[kind]++
    if (kind === 'file') this.#add(path, `${this.#hash.digest('hex')}  ${path}\n`)
    if (kind === 'symlink') this.#add(path, `-> ${target}  ${path}\n`)
  }

  #add(path: string, line: string): void {
    this.#lines.push({ path: Buffer.from(path), line })
  }
}
