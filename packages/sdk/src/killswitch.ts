import type { KillReport, KillScope } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

/** What is killed. `target` is a sandbox or an agent; of a tenant, another than one's own, as is the `tenant` of an agent. */
export interface KillTarget {
  readonly scope: KillScope
  readonly target?: string | undefined
  readonly tenant?: string | undefined
}

/** Ends a sandbox, an agent, a tenant or everything, and grants nothing there until it is lifted. Lifting needs an admin. */
export class Killswitch {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Answers when every process is seen to be gone, or with those in `unverified` that may live. Safe to repeat. */
  async on(what: KillTarget & { readonly reason?: string | undefined }, signal?: AbortSignal): Promise<KillReport> {
    return this.#transport.json('turnKillswitchOn', { body: what, signal })
  }

  /** Newest first: those that are on, or with `all` the lifted ones too. */
  async list(options: { readonly all?: boolean; readonly signal?: AbortSignal } = {}): Promise<readonly KillReport[]> {
    const { signal, all = false } = options
    return (await this.#transport.json('listKillswitches', { query: { all }, signal })).items
  }

  /** What was ended stays ended. */
  async lift(what: KillTarget, signal?: AbortSignal): Promise<KillReport> {
    return this.#transport.json('liftKillswitch', { body: what, signal })
  }
}
