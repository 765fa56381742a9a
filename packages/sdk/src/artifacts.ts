import { AirlockError } from './errors.ts'
import type { Artifact as ArtifactData, ArtifactLink, CollectedArtifacts } from './nouns.ts'
import { type Bytes, chunksIn, type Transport } from './transport/transport.ts'

export interface UploadArtifactOptions {
  readonly agent?: string | undefined
  readonly ttlMs?: number | undefined
  /** Of the content, where it is a stream. Without it, the largest size is set aside of the quota while it is sent. */
  readonly size?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface CollectOptions {
  /** The command or the step that made the files. */
  readonly command?: string | undefined
  readonly step?: string | undefined
  readonly ttlMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ArtifactListOptions {
  readonly sandbox?: string | undefined
  readonly command?: string | undefined
  readonly step?: string | undefined
  readonly job?: string | undefined
  readonly agent?: string | undefined
  readonly name?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Bytes that left a sandbox on purpose, and outlive it. */
export class Artifacts {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Keeps files of a sandbox that match the patterns, absolute or relative to /workspace. All or nothing. */
  async collect(
    sandbox: string,
    patterns: readonly string[],
    options: CollectOptions = {},
  ): Promise<CollectedArtifacts> {
    const { signal, ...rest } = options
    const body = { patterns, ...rest }
    return this.#transport.json('collectArtifacts', { params: { id: sandbox }, body, signal })
  }

  async upload(name: string, content: Bytes, options: UploadArtifactOptions = {}): Promise<ArtifactData> {
    const { signal, ...rest } = options
    return this.#transport.json('uploadArtifact', { query: { name, ...rest }, bytes: content, signal })
  }

  async get(id: string, signal?: AbortSignal): Promise<ArtifactData> {
    return this.#transport.json('getArtifact', { params: { id }, signal })
  }

  /** One page, newest first. */
  async list(
    options: ArtifactListOptions = {},
  ): Promise<{ readonly items: readonly ArtifactData[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    return this.#transport.json('listArtifacts', { query, signal })
  }

  /** All of it, or a range of bytes: `to` is the last one. Throws when fewer bytes arrive than were announced. */
  async *download(
    id: string,
    options: {
      readonly from?: number | undefined
      readonly to?: number | undefined
      readonly signal?: AbortSignal | undefined
    } = {},
  ): AsyncGenerator<Uint8Array> {
    const { from = 0, to, signal } = options
    const isPart = from > 0 || to !== undefined
    const headers = isPart ? { range: `bytes=${from}-${to ?? ''}` } : {}
    const response = await this.#transport.send('downloadArtifact', { params: { id }, headers, signal })
    let left = Number(response.headers.get('content-length') ?? 0)
    for await (const chunk of response.body ? chunksIn(response.body) : []) {
      left -= chunk.length
      yield chunk
    }
    if (left > 0) throw new AirlockError('server_unreachable', 'The connection broke before the end of the artifact.')
  }

  /** A URL that downloads it without a key until it expires: a secret. */
  async link(
    id: string,
    options: { readonly expiresInMs?: number | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ArtifactLink> {
    const { signal, ...body } = options
    return this.#transport.json('linkArtifact', { params: { id }, body, signal })
  }

  /** Its links stop working at once. */
  async remove(id: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.send('removeArtifact', { params: { id }, signal })
  }
}
