import type { Secret } from '../nouns.ts'
import type { Transport } from '../transport/transport.ts'

/** Credentials of tools, by name. No answer has a value. Needs the key of an admin. */
export class Secrets {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async list(signal?: AbortSignal): Promise<readonly Secret[]> {
    return (await this.#transport.json('listSecrets', { signal })).items
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.json('removeSecret', { params: { name }, signal })
  }
}
