import { AirlockError, keysHealth, type KeysHealth } from '@airlock/contract'
import { WireClient } from '@airlock/wire'

/** Less than the control plane waits for an answer. */
const ANSWER_MS = 1_000
const MAX_JSON_BYTES = 1024 * 1024

/** `GET /health` of the process `keys`. Throws `not_ready` when it does not answer. */
export class KeysHealthClient {
  readonly #http: WireClient

  constructor(socket: string) {
    this.#http = new WireClient({
      address: { unix: socket },
      peer: 'keys',
      unavailable: (cause) =>
        new AirlockError('not_ready', 'The process that holds the keys does not answer.', { cause }),
      maxJsonBytes: MAX_JSON_BYTES,
    })
  }

  async read(): Promise<KeysHealth> {
    return this.#http.json({ method: 'GET', path: '/health', answerMs: ANSWER_MS, again: 'same' }, keysHealth)
  }

  close(): void {
    this.#http.close()
  }
}
