import { AirlockError, type DataPlaneHealth, type ErrorCode, type Needs, type NodeDisk } from '@airlock/contract'
import type { NodeLease } from './node-lease.ts'

/** `full`: only the reserve is left. */
export type HostDiskLevel = 'good' | 'low' | 'full'

/** `evidence_unavailable`: the end of the chain of a tenant is being checked, and nothing is granted to it meanwhile. */
export type ReadyWarning = 'host_disk_low' | 'evidence_broken' | 'evidence_unavailable'

export type Ready =
  | { readonly ready: true; readonly warnings: readonly ReadyWarning[] }
  | { readonly ready: false; readonly reason: string }

/** So much more than its reserve, in parts of it, and the disk of the host is not low. */
const NEAR = 0.25

/**
 * Whether we serve, and what keeps us from granting. `/readyz` answers from what the sweep saw last, so that asking
 * often costs nothing.
 */
export class Readiness {
  #phase: 'starting' | 'serving' | 'stopping' = 'starting'
  #node: DataPlaneHealth | undefined
  #nodeAnswers = false
  #evidence: 'good' | 'unavailable' = 'good'
  /** Tenants whose evidence does not verify. */
  readonly #broken = new Set<string>()
  /** Tenants whose evidence is being checked. */
  readonly #waiting = new Set<string>()
  readonly #lease: Pick<NodeLease, 'isHeld' | 'isAnswered'>

  constructor(lease: Pick<NodeLease, 'isHeld' | 'isAnswered'>) {
    this.#lease = lease
  }

  serve(): void {
    if (this.#phase === 'starting') this.#phase = 'serving'
  }

  stop(): void {
    this.#phase = 'stopping'
  }

  nodeAnswered(node: DataPlaneHealth): void {
    this.#node = node
    this.#nodeAnswers = true
  }

  nodeIsSilent(): void {
    this.#nodeAnswers = false
  }

  setEvidence(evidence: 'good' | 'unavailable'): void {
    this.#evidence = evidence
  }

  /** Whether that is new. The recorder refuses what would be granted to a tenant whose chain is broken; all others go on. */
  setChain(tenant: string, state: 'good' | 'waiting' | 'broken'): boolean {
    const set = { good: undefined, waiting: this.#waiting, broken: this.#broken }[state]
    const isNew = set ? !set.has(tenant) : this.#waiting.has(tenant) || this.#broken.has(tenant)
    for (const other of [this.#waiting, this.#broken]) if (other !== set) other.delete(tenant)
    set?.add(tenant)
    return isNew
  }

  /** Whether the chain of a tenant is being checked, so nothing can be recorded of it yet. */
  isWaiting(tenant: string): boolean {
    return this.#waiting.has(tenant)
  }

  /** How many chains are broken. */
  get brokenChains(): number {
    return this.#broken.size
  }

  /** Whether the sandboxes of this node are ours to judge now. */
  get isNodeHeld(): boolean {
    return this.#lease.isHeld
  }

  /** Every request passes here before its handler. Fails closed: nothing is granted when another may be this node. */
  assert(needs: Needs): void {
    if (needs !== 'nothing' && this.#phase !== 'serving') throw new AirlockError('not_ready')
    if (needs === 'granting' && !this.#lease.isHeld)
      throw new AirlockError('store_unavailable', 'The store has not heard of this node in time.')
  }

  /** Where new sandboxes go. */
  node(): DataPlaneHealth {
    if (!this.#node) throw new AirlockError('data_plane_unavailable')
    return this.#node
  }

  /** Null until the data plane has answered. */
  get disk(): NodeDisk | null {
    return this.#node?.disk ?? null
  }

  /** How near the host is to what it keeps for evidence and the store. */
  get hostDisk(): HostDiskLevel {
    if (!this.disk) return 'good'
    const { freeBytes, reserveBytes } = this.disk
    if (freeBytes < reserveBytes) return 'full'
    return freeBytes < reserveBytes * (1 + NEAR) ? 'low' : 'good'
  }

  /** For `/readyz`: whether sandboxes can be created now; the reason when not, and what will be one soon. */
  get state(): Ready {
    const { reason } = this
    if (reason !== undefined) return { ready: false, reason }
    const warnings: ReadyWarning[] = []
    if (this.hostDisk === 'low') warnings.push('host_disk_low')
    if (this.#broken.size > 0) warnings.push('evidence_broken')
    if (this.#waiting.size > 0) warnings.push('evidence_unavailable')
    return { ready: true, warnings }
  }

  get reason(): ErrorCode | undefined {
    if (this.#phase !== 'serving') return 'not_ready'
    // The store first: without it the evidence cannot be looked after either.
    if (!this.#lease.isHeld || !this.#lease.isAnswered) return 'store_unavailable'
    if (this.#evidence === 'unavailable') return 'evidence_unavailable'
    if (!this.#nodeAnswers) return 'data_plane_unavailable'
    return this.hostDisk === 'full' ? 'host_disk_full' : undefined
  }
}
