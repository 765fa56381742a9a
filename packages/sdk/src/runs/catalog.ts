import type { Graph, GraphInput } from '../nouns.ts'
import type { Transport } from '../transport/transport.ts'

/** Agent programs that runs may name. */
export class Catalog {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async list(signal?: AbortSignal): Promise<readonly Graph[]> {
    return (await this.#transport.json('listCatalog', { signal })).items
  }

  async get(name: string, signal?: AbortSignal): Promise<Graph> {
    return this.#transport.json('getGraph', { params: { name }, signal })
  }

  /** Puts an agent program into the catalog of the tenant, or replaces it. */
  async put(name: string, graph: GraphInput, signal?: AbortSignal): Promise<Graph> {
    return this.#transport.json('putGraph', { params: { name }, body: graph, signal })
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.send('removeGraph', { params: { name }, signal })
  }
}
