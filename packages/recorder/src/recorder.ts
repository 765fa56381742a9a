import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type EventReader, type Followed, GENESIS, type RecordPage, type Settled } from '@airlock/audit'
import {
  type AgentSummary,
  AirlockError,
  type AuditQuery,
  type AuditRecord,
  type AuditStats,
  type Failpoint,
  id,
  type QuarantinedHead,
  type SignedHead,
  toAirlockError,
} from '@airlock/contract'
import type { Clock, Log } from '@airlock/std'
import { Archive } from './chain/archive.ts'
import { Chain, type Entry } from './chain/chain.ts'
import { exportChain } from './reading/export.ts'
import { Floods } from './floods.ts'
import { followChain, pageChain } from './reading/follow.ts'
import type { RecorderKeys } from './keys.ts'
import { queryChain, toAsked } from './reading/query.ts'
import { recoverChain, type Recovered } from './chain/recover.ts'
import { Retention, type RetentionRules } from './chain/retention.ts'
import { contradiction, type Known } from './chain/contradiction.ts'
import { quarantine } from './chain/quarantine.ts'
import { steadyClock } from './chain/jumps.ts'
import { measure } from './reading/stats.ts'
import { summarize } from './reading/summary.ts'
import { Tally } from './reading/tally.ts'
import { Upkeep } from './chain/upkeep.ts'

const MAX_CHAINS = 10_000
const RECORD_BYTES = 600
/** Where our own doings are recorded. */
const SYSTEM = 'system'

export interface RecorderOptions {
  readonly chainsDir: string
  readonly keys: RecorderKeys
  readonly clock: Clock
  readonly elapsed?: () => number
  readonly log: Log
  readonly failpoint: Failpoint
  readonly retention: RetentionRules
  readonly segmentBytes?: number
}

/** A chain and its past. */
interface Kept {
  readonly chain: Chain
  readonly archive: Archive
}

/** All chains, one per tenant. The only writer of evidence. */
export class Recorder {
  readonly #options: RecorderOptions
  readonly #quarantines = new Set<string>()
  readonly #floods: Floods
  readonly #upkeep: Upkeep
  readonly #chains = new Map<string, Kept>()
  readonly #opening = new Map<string, Promise<Kept>>()

  constructor(options: RecorderOptions) {
    this.#options = options
    const { retention: rules, log, elapsed = () => options.clock.now() } = options
    const retention = new Retention({ rules, log, clock: steadyClock(options.clock, elapsed) })
    this.#floods = new Floods(options.clock)
    this.#upkeep = new Upkeep({ ...options, retention, floods: this.#floods })
  }

  /** Recovers every chain. One that does not verify is served, but never appended to. */
  async open(): Promise<void> {
    const found = await readdir(this.#options.chainsDir, { withFileTypes: true })
    for (const entry of found.filter((one) => one.isDirectory() && id.safeParse(one.name).success))
      await this.#recover(entry.name)
    const broken = [...this.#chains].filter(([, { chain }]) => chain.broken !== undefined).map(([tenant]) => tenant)
    const { chain } = await this.#kept(SYSTEM)
    chain.owe(ownRecord(SYSTEM, 'recorder.start', { chains: this.#chains.size, broken }))
    this.#upkeep.start(() => [...this.#chains.values()])
  }

  /** Resolves when the record is durable. Precondition: the tenant's name is valid. */
  async append(entry: Entry): Promise<void> {
    this.#floods.assertRoom(entry)
    this.#floods.add(entry, sizeOf(entry))
    const known = this.#chains.get(entry.record.tenant)
    await (known ?? (await this.#kept(entry.record.tenant))).chain.append(entry)
  }

  async query(
    tenant: string,
    query: AuditQuery,
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly nextCursor: string | null }> {
    return queryChain(await this.#kept(tenant), toAsked(query))
  }

  async page(tenant: string, asked: Parameters<EventReader['page']>[1]): Promise<RecordPage> {
    return pageChain(await this.#kept(tenant), asked)
  }

  async *follow(
    tenant: string,
    asked: Parameters<EventReader['follow']>[1],
    signal: AbortSignal,
  ): AsyncGenerator<Followed> {
    yield* followChain(await this.#kept(tenant), asked, signal)
  }

  async summary(tenant: string, of: Parameters<EventReader['summary']>[1]): Promise<AgentSummary> {
    return summarize(await this.#kept(tenant), of)
  }

  async stats(tenant: string): Promise<AuditStats> {
    return measure(await this.#kept(tenant), this.#options.retention)
  }

  async *export(tenant: string): AsyncGenerator<string> {
    const { chain, archive } = await this.#kept(tenant)
    yield* exportChain(chain, archive)
  }

  /** Whether a chain is what others know of it. Decides what becomes of an end that is in doubt; a chain that fails is only read. */
  async settle(tenant: string, known: Known): Promise<Settled> {
    const kept = await this.#kept(tenant)
    const { chain } = kept
    const { publicPem: publicKey } = this.#options.keys
    try {
      if (chain.broken === undefined) {
        const reason = await contradiction(kept, known)
        if (reason === undefined) await chain.trustEnd()
        else {
          chain.distrust(reason)
          this.#options.log.error('a chain is not what was signed', { tenant, reason })
        }
      }
      return { state: chain.broken === undefined ? 'good' : 'broken', reason: chain.broken ?? null, publicKey }
    } catch (error) {
      // A disk that is full, or fails: asked again later. Nothing is granted meanwhile.
      this.#options.log.warn('the end of a chain could not be settled', { tenant, error })
      return { state: 'waiting', reason: toAirlockError(error).message, publicKey }
    }
  }

  /** Sets aside what does not verify, says so in the chain, signed, and lets it go on. One at a time. */
  async quarantine(
    tenant: string,
    asked: { readonly by: string; readonly head: SignedHead | null },
  ): Promise<QuarantinedHead> {
    const { chain, archive } = await this.#kept(tenant)
    const reason = chain.broken
    if (chain.isDoubtful && reason === undefined)
      throw new AirlockError(
        'evidence_unavailable',
        `The end of the chain of ${tenant} is being checked: wait for that.`,
      )
    if (reason === undefined || this.#quarantines.has(tenant))
      throw new AirlockError('invalid_request', `The evidence of ${tenant} verifies: there is nothing to set aside.`)
    const { clock, log } = this.#options
    this.#quarantines.add(tenant)
    try {
      const ts = new Date(clock.now()).toISOString()
      const { by, head } = asked
      const of = { reason, by, ts, known: head?.seq ?? 0, start: archive.start }
      const statement = await quarantine(archive.place, of)
      await chain.resume(await recoverChain(archive.place))
      log.warn('broken evidence was set aside', { tenant, ...statement.quarantined, after: statement.seq })
      const payload = { after: statement.seq, ...statement.quarantined }
      await chain.appendOwn({ tenant, actor: by, point: 'audit.quarantine', status: 'done', payload })
      return statement
    } finally {
      this.#quarantines.delete(tenant)
    }
  }

  async head(tenant: string): Promise<{ readonly head: SignedHead; readonly publicKey: string }> {
    const { chain } = await this.#kept(tenant)
    return { head: chain.signHead(), publicKey: this.#options.keys.publicPem }
  }

  async close(): Promise<void> {
    await this.#upkeep.close()
    await Promise.all(this.#chains.values().map(async ({ chain }) => chain.close()))
  }

  async #recover(tenant: string): Promise<void> {
    const place = this.#place(tenant)
    const { log } = this.#options
    const archive = await Archive.open(place, log)
    const recovered = await recoverChain(place).catch(asBroken)
    const chain = this.#newChain(archive, recovered)
    this.#chains.set(tenant, { chain, archive })
    if (recovered.broken !== undefined) log.error('a chain does not verify', { tenant, reason: recovered.broken })
    const { torn } = recovered
    if (torn) chain.owe(ownRecord(tenant, 'recorder.recover', { tornBytes: torn.bytes, saved: torn.saved }))
  }

  /** The chain of a tenant, made when there is none: in memory only, until something is written. */
  async #kept(tenant: string): Promise<Kept> {
    const known = this.#chains.get(tenant)
    if (known) return known
    const opening = this.#opening.get(tenant) ?? this.#make(tenant)
    this.#opening.set(tenant, opening)
    return opening.finally(() => this.#opening.delete(tenant))
  }

  async #make(tenant: string): Promise<Kept> {
    if (this.#chains.size >= MAX_CHAINS) throw new AirlockError('evidence_unavailable', 'There are too many chains.')
    const archive = await Archive.open(this.#place(tenant), this.#options.log)
    const kept = { chain: this.#newChain(archive), archive }
    this.#chains.set(tenant, kept)
    return kept
  }

  #newChain(archive: Archive, recovered?: Recovered): Chain {
    return new Chain({
      ...this.#options,
      ...archive.place,
      ...(recovered ? { recovered } : {}),
      onSealed: (segment, tally) => this.#upkeep.sealed({ archive, segment, tally }),
    })
  }

  #place(tenant: string) {
    return { dir: join(this.#options.chainsDir, tenant), tenant, keys: this.#options.keys }
  }
}

/** About what a record takes: what everybody's has, and what this one says. */
function sizeOf({ record }: Entry): number {
  return RECORD_BYTES + JSON.stringify(record.payload).length
}

/** Closed: a chain that cannot even be read is not appended to, and does not keep the others from being served. */
function asBroken(error: unknown): Recovered {
  const broken = `it cannot be read: ${String(error)}`
  const nothing = { end: undefined, torn: undefined, doubtful: undefined, rids: [], tally: new Tally() }
  return { position: { seq: 0, hash: GENESIS }, ts: 0, unsigned: 0, broken, ...nothing }
}

function ownRecord(
  tenant: string,
  point: 'recorder.start' | 'recorder.recover',
  payload: Readonly<Record<string, string[] | number | boolean>>,
) {
  return { tenant, actor: 'system', point, status: 'done' as const, payload }
}
