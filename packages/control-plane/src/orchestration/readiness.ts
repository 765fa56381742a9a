import { AirlockError, type DataPlaneHealth, type ErrorCode } from '@airlock/contract'

/**
 * Whether we serve, and what keeps us from granting. `/readyz` answers from what the sweep saw last, so that asking
 * often costs nothing.
 */
export class Readiness {
  #phase: 'starting' | 'serving' | 'stopping' = 'starting'
  #node: DataPlaneHealth | undefined
  #nodeAnswers = false
  #evidence: 'good' | 'unavailable' | 'broken' = 'good'
  readonly #lease: { readonly isHeld: boolean }

  constructor(lease: { readonly isHeld: boolean }) {
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

  /** Broken evidence stays broken until somebody has looked and restarts us. */
  setEvidence(evidence: 'good' | 'unavailable' | 'broken'): void {
    if (this.#evidence !== 'broken') this.#evidence = evidence
  }

  /** Whether the sandboxes of this node are ours to judge now. */
  get isNodeHeld(): boolean {
    return this.#lease.isHeld
  }

  /** Every request passes here. */
  assertServing(): void {
    if (this.#phase !== 'serving') throw new AirlockError('not_ready')
  }

  /** What grants or continues passes here. Fails closed when the evidence was tampered with, or another may be this node. */
  assertGranting(): void {
    this.assertServing()
    if (!this.#lease.isHeld)
      throw new AirlockError('store_unavailable', 'The store has not heard of this node in time.')
    if (this.#evidence === 'broken') throw new AirlockError('evidence_broken')
  }

  /** Where new sandboxes go. */
  node(): DataPlaneHealth {
    if (!this.#node) throw new AirlockError('data_plane_unavailable')
    return this.#node
  }

  get reason(): ErrorCode | undefined {
    if (this.#phase !== 'serving') return 'not_ready'
    if (this.#evidence === 'broken') return 'evidence_broken'
    if (this.#evidence === 'unavailable') return 'evidence_unavailable'
    if (!this.#lease.isHeld) return 'store_unavailable'
    return this.#nodeAnswers ? undefined : 'data_plane_unavailable'
  }
}
