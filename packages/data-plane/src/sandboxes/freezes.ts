import type { FreezeRequest, FrozenSandboxes } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { IsolationBackend } from '../isolation/backend.ts'
import { freezeAll } from './freeze-all.ts'
import { isInScope, type PermitBans } from './permit-bans.ts'
import type { Registry } from './registry.ts'

export interface FreezesOptions {
  readonly backend: IsolationBackend
  readonly registry: Registry
  readonly bans: PermitBans
  readonly log: Log
}

/** What a kill begins with. */
export class Freezes {
  readonly #options: FreezesOptions

  constructor(options: FreezesOptions) {
    this.#options = options
  }

  /**
   * Everything in scope stands still, and permits signed before are worthless. What is being started is only named: no code
   * of users runs there yet, and a launcher that stands still could not be broken off.
   */
  async freeze(scope: FreezeRequest): Promise<FrozenSandboxes> {
    const { backend, registry, bans, log } = this.#options
    bans.add(scope)
    const inScope = [...registry.entries].filter(([, { permit }]) => isInScope(scope, permit))
    const isStarting = ([, { state }]: (typeof inScope)[number]) => state === 'starting'
    const standing = inScope.filter((one) => !isStarting(one)).map(([id]) => id)
    const starting = inScope.filter(isStarting).map(([id]) => ({ id, frozenMs: null, processes: null }))
    return { sandboxes: [...(await freezeAll(backend, standing, log)), ...starting] }
  }
}
