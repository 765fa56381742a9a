import type { UsageQuery, UsageReport } from './nouns.ts'
import type { Transport } from './transport.ts'

type Options = UsageQuery & { readonly signal?: AbortSignal | undefined }

/** The ledger: compute, calls of models, tokens and dollars. */
export class Usage {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Rows by day, the latest first, and agent; or as `by` says. */
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
