import type { FreezeRequest, Permit } from '@airlock/contract'
import type { Clock } from '@airlock/std'

/**
 * Permits that a kill made worthless: those in its scope that were signed before it. Permits live for a minute, and so does
 * what is remembered here; who is killed gets no new ones from the control plane.
 */
export class PermitBans {
  readonly #clock: Clock
  #bans: readonly FreezeRequest[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(ban: FreezeRequest): void {
    const now = this.#clock.now()
    const others = this.#bans.filter((old) => old.permitsUntil >= now && !isSame(old, ban))
    this.#bans = [...others, ban]
  }

  covers(permit: Pick<Permit, 'tenant' | 'agent' | 'sandbox' | 'expiresAt'>): boolean {
    return this.#bans.some((ban) => permit.expiresAt <= ban.permitsUntil && isInScope(ban, permit))
  }
}

/** Null is any. */
export function isInScope(
  scope: Pick<FreezeRequest, 'tenant' | 'agent' | 'sandbox'>,
  of: Pick<Permit, 'tenant' | 'agent' | 'sandbox'>,
): boolean {
  const fits = (wanted: string | null, has: string) => wanted === null || wanted === has
  return fits(scope.tenant, of.tenant) && fits(scope.agent, of.agent) && fits(scope.sandbox, of.sandbox)
}

function isSame(a: FreezeRequest, b: FreezeRequest): boolean {
  return a.tenant === b.tenant && a.agent === b.agent && a.sandbox === b.sandbox
}
