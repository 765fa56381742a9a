import type { UsageQuery, UsageReport } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

type Options = UsageQuery & { readonly signal?: AbortSignal | undefined }

/** The ledger: what agents used, by day. */
export class Usage {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** By day, the latest first, and by agent. */
  async report(options: Options = {}): Promise<UsageReport> {
    const { signal, ...query } = options
    return this.#transport.json('getUsage', { query, signal })
  }

  /** The same as CSV, with a line of names first. */
  async csv(options: Options = {}): Promise<string> {
    const { signal, ...query } = options
    const response = await this.#transport.send('getUsage', { query, signal, headers: { accept: 'text/csv' } })
    return response.text()
  }
}
