import { AirlockError } from './errors.ts'
import type { AuditChain, AuditQuery, AuditRecord, AuditStats, QuarantinedHead, SignedHead } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

/** The evidence of the caller's tenant. Needs a key that may read it. */
export class Audit {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** One page, newest first. */
  async events(
    query: Partial<AuditQuery> & { readonly signal?: AbortSignal } = {},
  ): Promise<{ readonly items: readonly AuditRecord[]; readonly nextCursor: string | null }> {
    const { signal, ...rest } = query
    return this.#transport.json('auditEvents', { query: rest, signal })
  }

  /** The whole chain as NDJSON, to be kept and verified elsewhere. Throws when it does not arrive whole. */
  async *export(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const response = await this.#transport.send('auditExport', { signal })
    try {
      if (response.body) yield* response.body
    } catch (cause) {
      signal?.throwIfAborted()
      throw new AirlockError('server_unreachable', 'The connection broke before the whole chain was here.', { cause })
    }
  }

  /** The chains of all nodes that share a store: where each is exported, and its latest head that the store has. */
  async chains(signal?: AbortSignal): Promise<readonly AuditChain[]> {
    return (await this.#transport.json('auditChains', { signal })).items
  }

  /** Sets aside what does not verify of the chain of a tenant, and lets it go on. Needs a key of the platform. */
  async quarantine(tenant: string, signal?: AbortSignal): Promise<QuarantinedHead> {
    return this.#transport.json('auditQuarantine', { body: { tenant }, signal })
  }

  /** How much there is, how fast it grows, whether it verifies, what was dropped. */
  async stats(signal?: AbortSignal): Promise<AuditStats> {
    return this.#transport.json('auditStats', { signal })
  }

  /** Signed now: kept elsewhere, it shows a later truncation. */
  async head(signal?: AbortSignal): Promise<{ readonly head: SignedHead; readonly publicKey: string }> {
    return this.#transport.json('auditHead', { signal })
  }
}
