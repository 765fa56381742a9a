import { AirlockError } from './errors.ts'
import type { PackOptions, Skipped } from './node/local-tree.ts'
import type { Unpacked } from './node/unpack-tree.ts'
import type { ArchiveSummary, FileEntry } from './nouns.ts'
import { type Bytes, chunksIn, type Transport } from './transport/transport.ts'

export interface FileListing {
  readonly entries: readonly FileEntry[]
  /** There are more than were asked for. */
  readonly truncated: boolean
}

interface Options {
  readonly signal?: AbortSignal | undefined
}

export interface TreeOptions extends Options, PackOptions {}

/** An upload, and what was left out of it because no archive may hold it. */
export interface UploadedTree extends ArchiveSummary {
  readonly skipped: readonly Skipped[]
}

/** The files of one sandbox. Paths are absolute, or relative to /workspace; they are resolved inside. */
export class SandboxFiles {
  readonly #transport: Transport
  readonly #sandbox: string

  /** @internal */
  constructor(transport: Transport, sandbox: string) {
    this.#transport = transport
    this.#sandbox = sandbox
  }

  async read(path: string, options: Options = {}): Promise<Uint8Array> {
    const response = await this.#open(path, options)
    return new Uint8Array(await response.arrayBuffer().catch((cause: unknown) => throwBroken(cause, options)))
  }

  async readText(path: string, options: Options = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  /** For files that do not fit into memory. Reading throws when the file does not arrive whole. */
  async *readStream(path: string, options: Options = {}): AsyncGenerator<Uint8Array> {
    const response = await this.#open(path, options)
    try {
      if (response.body) yield* chunksIn(response.body)
    } catch (cause) {
      throwBroken(cause, options)
    }
  }

  /** Replaces the content, or makes the file. Answers how many bytes were written. */
  async write(path: string, content: Bytes, options: Options = {}): Promise<number> {
    return this.#write({ path }, content, options)
  }

  async append(path: string, content: Bytes, options: Options = {}): Promise<number> {
    return this.#write({ path, append: true }, content, options)
  }

  /**
   * Copies a local directory to a directory of the sandbox in one request, with modes and times. Links that lead out of it and
   * what is neither file, directory nor link are left out, and named in the answer.
   */
  async uploadDirectory(directory: string, path: string, options: TreeOptions = {}): Promise<UploadedTree> {
    const tree = this.#transport.trees.pack(directory, options)
    const summary = await this.writeArchive(path, tree.bytes(), options)
    if (summary.manifest !== tree.manifest)
      throw new AirlockError('internal', 'The server read another archive than the one that was sent.')
    return { ...summary, skipped: tree.skipped }
  }

  /**
   * Copies a directory of the sandbox to a local one in one request. What it sends is judged entry by entry: nothing is written
   * outside of the directory, nor through a link. Files that are there are replaced, others stay.
   */
  async downloadDirectory(path: string, directory: string, options: TreeOptions = {}): Promise<Unpacked> {
    return this.#transport.trees.unpack(this.readArchive(path, options), directory, options)
  }

  /** Writes a tar below a directory of the sandbox. */
  async writeArchive(path: string, archive: Bytes, options: Options = {}): Promise<ArchiveSummary> {
    const { signal } = options
    const call = { params: this.#params, query: { path }, bytes: archive, signal }
    const { path: _, ...summary } = await this.#transport.json('writeArchive', call)
    return summary
  }

  /** A directory of the sandbox as a tar. Reading throws when it does not arrive whole. */
  async *readArchive(path: string, options: Options = {}): AsyncGenerator<Uint8Array> {
    const { signal } = options
    const response = await this.#transport.send('readArchive', { params: this.#params, query: { path }, signal })
    try {
      if (response.body) yield* response.body
    } catch (cause) {
      throwBroken(cause, options, 'archive')
    }
  }

  async stat(path: string, options: Options = {}): Promise<FileEntry> {
    return this.#transport.json('statFile', { params: this.#params, query: { path }, ...options })
  }

  async list(path = '/workspace', options: Options & { readonly limit?: number } = {}): Promise<FileListing> {
    const { limit, signal } = options
    return this.#transport.json('listFiles', { params: this.#params, query: { path, limit }, signal })
  }

  async mkdir(path: string, options: Options & { readonly parents?: boolean } = {}): Promise<void> {
    const { parents = true, signal } = options
    await this.#transport.send('makeDirectory', { params: this.#params, body: { path, parents }, signal })
  }

  async move(from: string, to: string, options: Options = {}): Promise<void> {
    await this.#transport.send('moveFile', { params: this.#params, body: { from, to }, ...options })
  }

  async remove(path: string, options: Options & { readonly recursive?: boolean } = {}): Promise<void> {
    const { recursive = false, signal } = options
    await this.#transport.send('removeFile', { params: this.#params, query: { path, recursive }, signal })
  }

  get #params(): { readonly id: string } {
    return { id: this.#sandbox }
  }

  async #open(path: string, options: Options): Promise<Response> {
    return this.#transport.send('readFile', { params: this.#params, query: { path }, ...options })
  }

  async #write(query: { path: string; append?: boolean }, content: Bytes, options: Options): Promise<number> {
    const answer = await this.#transport.json('writeFile', {
      params: this.#params,
      query,
      bytes: content,
      ...options,
    })
    return answer.bytes
  }
}

function throwBroken(cause: unknown, options: Options, what = 'file'): never {
  options.signal?.throwIfAborted()
  throw new AirlockError('server_unreachable', `The connection broke before the whole ${what} was here.`, {
    cause,
    ...(what === 'file' ? {} : { hint: 'Try again; the evidence says why, such as a file that changed meanwhile.' }),
  })
}
