import { AirlockError } from './errors.ts'
import type { FileEntry } from './nouns.ts'
import { type Bytes, chunksIn, type Transport } from './transport/transport.ts'

export interface FileListing {
  readonly entries: readonly FileEntry[]
  /** There are more than were asked for. */
  readonly truncated: boolean
}

interface Options {
  readonly signal?: AbortSignal | undefined
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

function throwBroken(cause: unknown, options: Options): never {
  options.signal?.throwIfAborted()
  throw new AirlockError('server_unreachable', 'The connection broke before the whole file was here.', { cause })
}
