import type { Reservation } from '@airlock/contract'

export type Holder = Pick<Reservation, 'tenant' | 'sandbox'>

interface Tenant {
  held: number
  /** Null: a call of no sandbox. */
  readonly sandboxes: Map<string | null, number>
}

/**
 * Divides calls or bytes between sandboxes. A tenant holds at most half of what other tenants leave; a sandbox holds at most half
 * of what other sandboxes of its tenant leave of that. Each may hold one, so that a small whole can be used.
 */
export class Shares {
  readonly #whole: number
  readonly #tenants = new Map<string, Tenant>()
  #held = 0

  constructor(whole: number) {
    this.#whole = whole
  }

  /** Takes the amount, or takes nothing and returns false. */
  take(holder: Holder, amount = 1): boolean {
    const tenant = this.#tenants.get(holder.tenant)
    const ofTenant = tenant?.held ?? 0
    const ofSandbox = tenant?.sandboxes.get(holder.sandbox) ?? 0
    if (this.#held + amount > this.#whole) return false
    const tenantMost = halfOf(this.#whole - (this.#held - ofTenant))
    if (ofTenant + amount > tenantMost) return false
    if (ofSandbox + amount > halfOf(tenantMost - (ofTenant - ofSandbox))) return false
    this.#add(holder, amount)
    return true
  }

  /** Precondition: the holder took at least that much. */
  give(holder: Holder, amount = 1): void {
    this.#add(holder, -amount)
  }

  #add({ tenant: name, sandbox }: Holder, amount: number): void {
    const tenant = this.#tenants.get(name) ?? { held: 0, sandboxes: new Map<string | null, number>() }
    const ofSandbox = (tenant.sandboxes.get(sandbox) ?? 0) + amount
    tenant.held += amount
    this.#held += amount
    if (ofSandbox > 0) tenant.sandboxes.set(sandbox, ofSandbox)
    else tenant.sandboxes.delete(sandbox)
    if (tenant.sandboxes.size > 0) this.#tenants.set(name, tenant)
    else this.#tenants.delete(name)
  }
}

function halfOf(amount: number): number {
  return Math.max(1, amount / 2)
}
