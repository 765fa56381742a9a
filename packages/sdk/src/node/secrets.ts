import { sealSecret } from '@airlock/contract/sealing'
import { AirlockError } from '../errors.ts'
import type { Secret } from '../nouns.ts'
import { Secrets } from '../tools/secrets.ts'
import type { Transport } from '../transport/transport.ts'

/** A value goes into a header as it is. The process that sends it refuses any other. */
const VALUE = /^[\x21-\x7e]{16,2048}$/

/** Secrets that can be put: sealing needs Node. */
export class LocalSecrets extends Secrets {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    super(transport)
    this.#transport = transport
  }

  /**
   * Seals a value here, for one origin, and stores it; or gives a secret a new value. The server keeps ciphertext: only its process
   * `keys` opens it, to send it to that origin.
   */
  async put(
    name: string,
    { value, origin, signal }: { readonly value: string; readonly origin: string; readonly signal?: AbortSignal },
  ): Promise<Secret> {
    if (!VALUE.test(value))
      throw new AirlockError('invalid_request', 'A secret is 16 to 2048 visible ASCII characters without a space.', {
        hint: 'Check that the whole value was given, on one line.',
      })
    const { keyId, publicKey, tenant } = await this.#transport.json('getSealKey', { signal })
    const sealed = sealSecret(value, { tenant, name, origin }, publicKey)
    return this.#transport.json('putSecret', { params: { name }, body: { origin, keyId, sealed }, signal })
  }
}
