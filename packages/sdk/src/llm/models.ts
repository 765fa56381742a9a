import type { Model } from '../nouns.ts'
import type { Transport } from '../transport/transport.ts'

/** Models of the configured upstreams. */
export class Models {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async list(signal?: AbortSignal): Promise<Model[]> {
    return (await this.#transport.json('listModels', { signal })).items
  }
}
