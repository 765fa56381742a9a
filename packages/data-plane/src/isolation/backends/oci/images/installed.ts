import { readFileSync, statSync } from 'node:fs'

const STATUS = '/var/lib/dpkg/status'

/** Which Debian packages this host has, by name. Read again only when the list has changed. */
export class InstalledPackages {
  readonly #file: string
  #seen = ''
  #versions: ReadonlyMap<string, string> = new Map()

  constructor(file = STATUS) {
    this.#file = file
  }

  /** Undefined on a host that is not of Debian's kind. */
  versions(): ReadonlyMap<string, string> | undefined {
    const stat = statSync(this.#file, { throwIfNoEntry: false })
    if (!stat) return undefined
    const seen = `${stat.ino} ${stat.size} ${stat.mtimeMs}`
    if (seen !== this.#seen) {
      this.#versions = parse(readFileSync(this.#file, 'utf8'))
      this.#seen = seen
    }
    return this.#versions
  }
}

function parse(text: string): ReadonlyMap<string, string> {
  const versions = new Map<string, string>()
  for (const stanza of text.split('\n\n')) {
    if (!/^Status: \S+ \S+ installed$/mu.test(stanza)) continue
    const name = /^Package: (\S+)$/mu.exec(stanza)?.[1]
    const version = /^Version: (\S+)$/mu.exec(stanza)?.[1]
    if (name !== undefined && version !== undefined) versions.set(name, version)
  }
  return versions
}
