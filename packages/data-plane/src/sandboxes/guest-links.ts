import type { Failpoint } from '@airlock/contract'
import type { Clock, Log } from '@airlock/std'
import { join } from 'node:path'
import type { IsolationBackend } from '../isolation/backend.ts'
import { GuestLink } from '../session/guest-link.ts'
import type { GuestListener } from '../session/guest-listener.ts'
import type { Vault } from '../vault/vault.ts'
import type { Places } from './places.ts'
import type { Watch } from './watch.ts'

export interface GuestLinksOptions {
  readonly backend: IsolationBackend
  readonly places: Places
  readonly watch: Watch
  readonly vault: Vault
  /** How the guest comes in whose control directory this is. */
  readonly listenerIn: (controlDir: string) => GuestListener
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
}

/** Makes the link to the guest of a sandbox: what it is told of its sandbox is read outside. */
export class GuestLinks {
  readonly #options: GuestLinksOptions

  constructor(options: GuestLinksOptions) {
    this.#options = options
  }

  make(id: string, tenant: string): GuestLink {
    const { clock, log, failpoint, backend, places, watch, vault, listenerIn } = this.#options
    return new GuestLink({
      sandbox: id,
      listener: listenerIn(places.controlDirOf(id)),
      spoolDir: join(places.stateDirOf(id), 'commands'),
      vault: vault.of(tenant),
      clock,
      log,
      failpoint,
      usageOf: async (session) => (await backend.groupUsage(id, session)) ?? null,
      strainOf: async (session) => (await backend.strain(id, session)) ?? null,
      isDiskFull: () => this.#isDiskFull(id),
      onOverdue: (command) => {
        log.error('the guest did not end a command in time', { sandbox: id, command })
        void watch.end(id, 'guest_lost')
      },
    })
  }

  /** That something failed is told even where the disk cannot be asked. */
  async #isDiskFull(id: string): Promise<boolean> {
    const { backend, log } = this.#options
    try {
      return await backend.isDiskFull(id)
    } catch (error) {
      log.warn('could not read disk usage of a sandbox', { sandbox: id, error })
      return false
    }
  }
}
