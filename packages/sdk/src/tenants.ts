import type { Tenant } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

/** Tenants. To make one needs a key of the platform, such as the admin key of the first start. */
export class Tenants {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async create(id: string, signal?: AbortSignal): Promise<Tenant> {
    return this.#transport.json('createTenant', { body: { id }, signal })
  }

  /** One page, by name: one's own, or all of them with a key of the platform. */
  async list(
    options: {
      readonly limit?: number | undefined
      readonly cursor?: string | undefined
      readonly signal?: AbortSignal | undefined
    } = {},
  ): Promise<{ readonly items: readonly Tenant[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    return this.#transport.json('listTenants', { query, signal })
  }

  async get(id: string, signal?: AbortSignal): Promise<Tenant> {
    return this.#transport.json('getTenant', { params: { id }, signal })
  }
}
