import type { LlmStatus, Model } from '../nouns.ts'
import type { Transport } from '../transport.ts'

/** Models that sandboxes may name, and the upstreams that serve them. */
export class Models {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async list(signal?: AbortSignal): Promise<Model[]> {
    return (await this.#transport.json('listModels', { signal })).items
  }

  /** Keys and breakers of the upstreams, and the calls of your tenant under way. */
  async status(signal?: AbortSignal): Promise<LlmStatus> {
    return this.#transport.json('getLlmStatus', { signal })
  }
}
