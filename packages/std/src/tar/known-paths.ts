import { refuseEntry } from './tar-error.ts'
import type { TarEntry } from './entry.ts'

/** The paths of an archive so far: no entry comes twice, and none is below another that is not a directory. */
export class KnownPaths {
  readonly #kinds = new Map<string, TarEntry['kind'] | 'implied'>()

  /** Fails closed. */
  add({ path, kind }: Pick<TarEntry, 'path' | 'kind'>): void {
    const known = this.#kinds.get(path)
    if (known !== undefined && !(known === 'implied' && kind === 'directory'))
      throw refuseEntry(path, known === 'implied' ? 'is a directory elsewhere in the archive' : 'comes twice')
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
      const parent = path.slice(0, slash)
      const above = this.#kinds.get(parent)
      if (above === 'file' || above === 'symlink') throw refuseEntry(path, `is below a ${above}`)
      if (above !== undefined) break
      this.#kinds.set(parent, 'implied')
    }
    this.#kinds.set(path, kind)
  }
}
