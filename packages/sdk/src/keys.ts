import type { ApiKey, CreateKeyBody, NewApiKey } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

export interface CreateKeyOptions extends Pick<CreateKeyBody, 'name' | 'role'> {
  /** Another tenant than one's own needs a key of the platform. */
  readonly tenant?: string | undefined
  /** The only agents that the key may act for. */
  readonly agents?: readonly string[] | undefined
  readonly platform?: boolean | undefined
  /** Who holds it, such as an address. The person of the calling key when absent. */
  readonly person?: string | undefined
  readonly expiresInMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface KeyListOptions {
  readonly tenant?: string | undefined
  /** Also those that are revoked or have expired. */
  readonly all?: boolean | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** API keys. Needs the key of an admin. */
export class Keys {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The answer holds the secret; nobody can ask for it again. */
  async create(options: CreateKeyOptions): Promise<NewApiKey> {
    const { signal, ...body } = options
    return this.#transport.json('createKey', { body, signal })
  }

  /** One page, newest first. */
  async list(
    options: KeyListOptions = {},
  ): Promise<{ readonly items: readonly ApiKey[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    return this.#transport.json('listKeys', { query, signal })
  }

  async get(id: string, signal?: AbortSignal): Promise<ApiKey> {
    return this.#transport.json('getKey', { params: { id }, signal })
  }

  /** A new key that is what the old one is. The old one stays good for the overlap, a day by default. */
  async rotate(
    id: string,
    options: {
      readonly overlapMs?: number | undefined
      readonly expiresInMs?: number | undefined
      readonly signal?: AbortSignal | undefined
    } = {},
  ): Promise<NewApiKey> {
    const { signal, ...body } = options
    return this.#transport.json('rotateKey', { params: { id }, body, signal })
  }

  /** Takes effect with the next request. */
  async revoke(id: string, signal?: AbortSignal): Promise<ApiKey> {
    return this.#transport.json('revokeKey', { params: { id }, signal })
  }
}
