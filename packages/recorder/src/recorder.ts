import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { canonical, GENESIS, signHead } from '@airlock/audit'
import { AirlockError, type AuditQuery, type AuditRecord, type Failpoint, id, type SignedHead } from '@airlock/contract'
import type { Clock, Log } from '@airlock/std'
import { Chain, type Entry } from './chain.ts'
import { exportChain } from './export.ts'
import type { RecorderKeys } from './keys.ts'
import { queryChain } from './query.ts'
import { recoverChain, type Recovered } from './recover.ts'

const MAX_CHAINS = 10_000
/** Where our own doings are recorded. */
const SYSTEM = 'system'

export interface RecorderOptions {
  readonly chainsDir: string
  readonly keys: RecorderKeys
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
}

/** All chains, one per tenant. The only writer of evidence. */
export class Recorder {
  readonly #options: RecorderOptions
  readonly #chains = new Map<string, Chain>()

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** Recovers every chain. One that does not verify is served, but never appended to. */
  async open(): Promise<void> {
    const found = await readdir(this.#options.chainsDir, { withFileTypes: true })
    for (const entry of found.filter((one) => one.isDirectory() && id.safeParse(one.name).success))
      await this.#recover(entry.name)
    const broken = [...this.#chains].filter(([, chain]) => chain.broken !== undefined).map(([tenant]) => tenant)
    this.#chain(SYSTEM).owe(ownRecord(SYSTEM, 'recorder.start', { chains: this.#chains.size, broken }))
  }

  /** Resolves when the record is durable. Precondition: the tenant's name is valid. */
  async append(entry: Entry): Promise<void> {
    await this.#chain(entry.record.tenant).append(entry)
  }

  async query(
    tenant: string,
    query: AuditQuery,
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly nextCursor: string | null }> {
    const chain = this.#chains.get(tenant)
    return chain ? queryChain(this.#dir(tenant), chain.snapshot, query) : { records: [], nextCursor: null }
  }

  async *export(tenant: string): AsyncGenerator<string> {
    const chain = this.#chains.get(tenant)
    if (chain) yield* exportChain(chain, { dir: this.#dir(tenant), publicKey: this.#options.keys.public })
    else yield canonical(this.#emptyHead(tenant))
  }

  head(tenant: string): { readonly head: SignedHead; readonly publicKey: string } {
    const head = this.#chains.get(tenant)?.signHead() ?? this.#emptyHead(tenant)
    return { head, publicKey: this.#options.keys.publicPem }
  }

  async close(): Promise<void> {
    await Promise.all(this.#chains.values().map(async (chain) => chain.close()))
  }

  async #recover(tenant: string): Promise<void> {
    const { keys, log } = this.#options
    const recovered = await recoverChain({ dir: this.#dir(tenant), tenant, keys }).catch(asBroken)
    const chain = new Chain({ ...this.#options, dir: this.#dir(tenant), tenant, recovered })
    this.#chains.set(tenant, chain)
    if (recovered.broken !== undefined) log.error('a chain does not verify', { tenant, reason: recovered.broken })
    const { torn } = recovered
    if (torn) chain.owe(ownRecord(tenant, 'recorder.recover', { tornBytes: torn.bytes, saved: torn.saved }))
  }

  #chain(tenant: string): Chain {
    const known = this.#chains.get(tenant)
    if (known) return known
    if (this.#chains.size >= MAX_CHAINS) throw new AirlockError('evidence_unavailable', 'There are too many chains.')
    const chain = new Chain({ ...this.#options, dir: this.#dir(tenant), tenant })
    this.#chains.set(tenant, chain)
    return chain
  }

  #dir(tenant: string): string {
    return join(this.#options.chainsDir, tenant)
  }

  #emptyHead(tenant: string): SignedHead {
    const ts = new Date(this.#options.clock.now()).toISOString()
    return signHead(this.#options.keys.signing, { tenant, seq: 0, hash: GENESIS, ts })
  }
}

/** Closed: a chain that cannot even be read is not appended to, and does not keep the others from being served. */
function asBroken(error: unknown): Recovered {
  const broken = `it cannot be read: ${String(error)}`
  return { position: { seq: 0, hash: GENESIS }, ts: 0, unsigned: 0, end: undefined, broken, torn: undefined, rids: [] }
}

function ownRecord(
  tenant: string,
  point: 'recorder.start' | 'recorder.recover',
  payload: Readonly<Record<string, string[] | number | boolean>>,
) {
  return { tenant, actor: 'system', point, status: 'done' as const, payload }
}
