import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AirlockError, SEAL_KEY_FILE, sealKeyId } from '@airlock/contract'

/** The public key of this node's `keys` process, to which clients seal secrets. */
export class SealKeyFile {
  readonly #path: string

  constructor(publicDir: string) {
    this.#path = join(publicDir, SEAL_KEY_FILE)
  }

  async read(): Promise<{ readonly keyId: string; readonly publicKey: string }> {
    try {
      const publicKey = await readFile(this.#path, 'utf8')
      // It is empty while the process starts.
      if (!/^[\w-]{43}$/.test(publicKey)) throw new TypeError('no public key')
      return { keyId: sealKeyId(publicKey), publicKey }
    } catch (cause) {
      throw new AirlockError('not_ready', 'The process that opens secrets is not up yet.', { cause })
    }
  }
}
