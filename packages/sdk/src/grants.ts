import type { AddGrantBody, Grant } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

export interface AddGrantOptions extends Partial<Omit<AddGrantBody, 'path'>> {
  readonly signal?: AbortSignal | undefined
}

interface Of {
  /** The tenant of the agent; another than one's own needs a key of the platform. */
  readonly tenant?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Host paths that the sandboxes of an agent see. Only a key of the platform adds one. */
export class Grants {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** For sandboxes that are created from now on; read-only unless the mode is `rw`. */
  async add(agent: string, path: string, options: AddGrantOptions = {}): Promise<Grant> {
    const { signal, ...rest } = options
    return this.#transport.json('addGrant', { params: { id: agent }, body: { path, ...rest }, signal })
  }

  async list(agent: string, options: Of = {}): Promise<readonly Grant[]> {
    const { signal, ...query } = options
    return (await this.#transport.json('listGrants', { params: { id: agent }, query, signal })).items
  }

  /** Ends the sandboxes that hold it. */
  async remove(agent: string, grant: string, options: Of = {}): Promise<void> {
    const { signal, ...query } = options
    await this.#transport.json('removeGrant', { params: { id: agent, grant }, query, signal })
  }
}
