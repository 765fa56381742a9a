import type {
  Backtest,
  Evaluation,
  GuardianStatus,
  Operation,
  Point,
  Policy,
  PolicyCheck,
  PolicyDocumentInput,
  PolicyScope,
  PolicyVersion,
  RuleInForce,
} from './nouns.ts'
import type { Transport } from './transport/transport.ts'

interface Scoped {
  /** Of your tenant without it; those of the whole server need a key of the platform. */
  readonly scope?: PolicyScope | undefined
  readonly signal?: AbortSignal | undefined
}

/** Policies and their versions. To write one needs the role admin. */
export class Policies {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Each in its latest version. */
  async list({ signal, ...query }: Scoped = {}): Promise<readonly PolicyVersion[]> {
    return (await this.#transport.json('listPolicies', { query, signal })).items
  }

  async get(name: string, options: Scoped & { readonly version?: number | undefined } = {}): Promise<Policy> {
    const { signal, ...query } = options
    return this.#transport.json('getPolicy', { params: { name }, query, signal })
  }

  /** One page, newest first. */
  async versions(
    name: string,
    options: Scoped & { readonly limit?: number | undefined; readonly cursor?: string | undefined } = {},
  ): Promise<{ readonly items: readonly PolicyVersion[]; readonly nextCursor: string | null }> {
    const { signal, ...query } = options
    return this.#transport.json('listPolicyVersions', { params: { name }, query, signal })
  }

  /**
   * A new version, in force at once. With `expectedVersion` (0 for none) it is `stale_version` when somebody was faster.
   */
  async put(
    document: PolicyDocumentInput,
    options: Scoped & { readonly expectedVersion?: number | undefined } = {},
  ): Promise<Policy> {
    const { signal, scope, expectedVersion } = options
    const { name } = document
    return this.#transport.json('putPolicy', {
      params: { name },
      query: { scope },
      body: { document, expectedVersion },
      signal,
    })
  }

  /** Out of force; its versions are kept. */
  async remove(name: string, options: Scoped & { readonly expectedVersion?: number | undefined } = {}): Promise<void> {
    const { signal, ...query } = options
    await this.#transport.json('removePolicy', { params: { name }, query, signal })
  }

  /** Whether it would be accepted. Nothing is stored. */
  async check(document: PolicyDocumentInput, signal?: AbortSignal): Promise<PolicyCheck> {
    return this.#transport.json('checkPolicy', { body: { document }, signal })
  }

  /** What would change if it were in force, by what was decided before. */
  async backtest(
    document: PolicyDocumentInput,
    options: {
      readonly since?: string | undefined
      readonly until?: string | undefined
      readonly limit?: number | undefined
      readonly examples?: number | undefined
      readonly signal?: AbortSignal | undefined
    } = {},
  ): Promise<Backtest> {
    const { signal, ...bounds } = options
    return this.#transport.json('backtestPolicy', { body: { document, ...bounds }, signal })
  }
}

export interface Asked {
  readonly point: Point
  readonly operation: Operation
  readonly agent?: string | undefined
  readonly sandbox?: string | undefined
  /** A draft, in the place of the policy that has its name. */
  readonly document?: PolicyDocumentInput | undefined
}

/** What decides whether something may be done. */
export class Guardian {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async status(signal?: AbortSignal): Promise<GuardianStatus> {
    return this.#transport.json('getGuardian', { signal })
  }

  /** Every rule that is in force for your tenant, and those that are switched off. */
  async rules(signal?: AbortSignal): Promise<readonly RuleInForce[]> {
    return (await this.#transport.json('listRules', { signal })).items
  }

  /** What it would say if you did this, and by which rules. Nothing happens. */
  async evaluate(asked: Asked, signal?: AbortSignal): Promise<Evaluation> {
    return this.#transport.json('evaluatePolicies', { body: asked, signal })
  }
}
