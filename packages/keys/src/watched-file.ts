import { readFileSync, statSync } from 'node:fs'

/** The content of a small file, parsed once for each version. Each use asks the file system for the version. */
export class WatchedFile<T> {
  readonly #path: string
  readonly #parse: (content: Buffer) => T
  #version = ''
  #value: T | undefined

  constructor(path: string, parse: (content: Buffer) => T) {
    this.#path = path
    this.#parse = parse
  }

  /** Undefined when there is no such file. Throws what `parse` throws. */
  get(): T | undefined {
    const found = statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    if (found === undefined) {
      this.#version = ''
      this.#value = undefined
      return undefined
    }
    const version = `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`
    if (version !== this.#version) {
      this.#value = undefined
      this.#value = this.#parse(readFileSync(this.#path))
      this.#version = version
    }
    return this.#value
  }
}
