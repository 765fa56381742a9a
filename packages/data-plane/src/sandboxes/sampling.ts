import type { NodeDisk, NodeMetrics } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { Registry } from './registry.ts'

export interface SamplingOptions {
  readonly backend: IsolationBackend
  readonly registry: Registry
  readonly clock: Clock
}

/** What the host says of its sandboxes, taken when it is asked for. */
export class Sampling {
  readonly #options: SamplingOptions

  constructor(options: SamplingOptions) {
    this.#options = options
  }

  /** What the kernel says of everything that lives. */
  async metrics(): Promise<NodeMetrics> {
    const { backend, registry, clock } = this.#options
    const began = performance.now()
    const samples = await backend.sample(registry.livingIds)
    const at = clock.now()
    return { samples: samples.map((sample) => ({ ...sample, at })), tookMs: Math.round(performance.now() - began) }
  }

  async readDisk(): Promise<NodeDisk> {
    const { backend } = this.#options
    return backend.hostDisk.read(async () => backend.takenBytes())
  }
}
